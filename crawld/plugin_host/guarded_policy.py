"""A policy of a plug-in, in a shell that keeps its rules whatever it does.

The shell is a round robin (`UniformPolicy`) that knows the same pages: it says which pages are held
and in flight. After a call that raises, or a selection that is no page that waits, nobody knows
which pages the policy still has; so it is given up, and the round robin is left.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from crawld.core.revisit.due import Due
from crawld.core.revisit.policies import Policy, UniformPolicy, VisitObservation
from crawld.core.revisit.slots import FREE
from crawld.plugin_host.plugin import FAILED, Hook
from crawld.plugins import PolicyFactory

WHERE: Final = "a policy"


class GuardedPolicy(UniformPolicy):
    """A policy of a plug-in, for the pages of one site on one host."""

    def __init__(self, hook: Hook, factory: PolicyFactory) -> None:
        super().__init__()
        self._hook = hook
        made = hook.run(WHERE, factory)
        self._inner: Policy | None = None if made is FAILED else made

    @property
    def _given(self) -> Policy | None:
        """The policy of the plug-in; None: it is given up."""
        if self._hook.plugin.disabled:
            self._inner = None
        return self._inner

    def _tell(self, name: str, *arguments: object, **more: object) -> None:
        inner = self._given
        if inner is None:
            return
        if self._hook.run(WHERE, lambda: getattr(inner, name)(*arguments, **more)) is FAILED:
            self._inner = None

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Add a page."""
        if page not in self._slots:
            super().add(page, last_visit_at, weight)
            self._tell("add", page, last_visit_at, weight)

    def load(
        self,
        pages: ArrayLike,
        last_visit_at: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Add many pages."""
        super().load(pages, last_visit_at, weights)
        if np.size(np.asarray(pages)):
            self._tell("load", pages, last_visit_at, weights)

    def remove(self, page: int) -> None:
        """Remove a page."""
        super().remove(page)
        self._tell("remove", page)

    def set_weight(self, page: int, weight: float) -> None:
        """Set the importance of a page."""
        if page in self._slots:
            self._tell("set_weight", page, weight)

    def select(self, now: float) -> int | None:
        """Return the page that the policy selects, or the one visited longest ago without it."""
        inner = self._given
        if inner is None:
            return super().select(now)
        page = self._hook.run(WHERE, inner.select, now)
        if page is None:
            return None
        if page is not FAILED:
            if self._take(page):
                return int(page)
            self._hook.reject(WHERE, f"selected {page!r:.40}: no page that waits")
        self._inner = None
        return super().select(now)

    def next_due_at(self) -> float:
        """Return when to ask again after no page was selected, Unix seconds; ∞: not for a while."""
        return -math.inf if self._given is None else math.inf

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Record a visit."""
        if page in self._slots:
            super().record_visit(page, now, observation)
            self._tell("record_visit", page, now, observation)

    def release(self, page: int) -> None:
        """Put a selected page back."""
        if page in self._slots:
            super().release(page)
            self._tell("release", page)

    def record_hint(
        self,
        page: int,
        at: float,
        *,
        trust: float = 1.0,
        indirect: bool = False,
        due: Due | None = None,
    ) -> None:
        """Record a report that the page changed."""
        if page in self._slots:
            self._tell("record_hint", page, at, trust=trust, indirect=indirect, due=due)

    def _take(self, page: object) -> bool:
        """Mark a page in flight; return False if it is not held, or in flight already."""
        if isinstance(page, bool) or not isinstance(page, int | np.integer):
            return False
        slot = self._slots.find(int(page))
        if slot == FREE or slot not in self._heap:
            return False
        self._heap.remove(slot)
        return True
