"""Names of the selection policies; a separate module, so that reading a config loads no numpy."""

from __future__ import annotations

from typing import Final

NAMES: Final = ("uniform", "random", "random-f", "merge", "delayed", "greedy", "index")
