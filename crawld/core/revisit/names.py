"""Names of the selection policies; a separate module, so that reading a config loads no numpy."""

from __future__ import annotations

from typing import Final, Literal, get_args

PolicyName = Literal["uniform", "random", "random-f", "merge", "delayed", "greedy", "index"]

NAMES: Final[tuple[PolicyName, ...]] = get_args(PolicyName)
