"""The selection policies by the name in the config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from crawld.core.revisit.policies import Policy, UniformPolicy
from crawld.core.revisit.policies_frequency import DelayedPolicy, MergePolicy, RandomPolicy
from crawld.core.revisit.policies_greedy import GreedyPolicy
from crawld.core.revisit.policies_index import IndexPolicy

FACTORIES: Final[Mapping[str, Callable[[], Policy]]] = MappingProxyType(
    {
        "uniform": UniformPolicy,
        "random": RandomPolicy,
        "random-f": partial(RandomPolicy, by_frequency=True),
        "merge": MergePolicy,
        "delayed": DelayedPolicy,
        "greedy": GreedyPolicy,
        "index": IndexPolicy,
    }
)
"""Makes an empty policy of each name."""

FrequencyPolicy = MergePolicy | DelayedPolicy | RandomPolicy
"""Policies that follow allocated frequencies (`random` ignores them)."""

FOLLOW_FREQUENCIES: Final[frozenset[str]] = frozenset({"merge", "delayed", "random-f"})
"""Names of the policies that visit pages at allocated frequencies."""
