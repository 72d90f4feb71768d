"""Visited pages of one site and host in the order of their revisit policy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from crawld.core.change.record import Records
from crawld.core.change.refit import fit_renewals
from crawld.core.change.site_model import SiteModel
from crawld.core.revisit.policies import Policy, UniformPolicy
from crawld.core.revisit.policies_greedy import GreedyPolicy
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.core.revisit.registry import FACTORIES
from crawld.daemon.frontier.revisit_queue import VisitedPages
from crawld.plugins import PolicyFactory

_EMPTY: Final[Policy] = UniformPolicy()
"""The policy of queues without visited pages; one of their own would cost some KB a host."""

LOADED_LATER: Final = 4_096
"""Up to so many pages of the file are loaded when their policy is first used, in a millisecond: a
start on ten thousand hosts need not load them all."""


class OrderedPages:
    """The policy of a site on a host, with the models and weights of its pages.

    Attributes:
        policy_name: the policy that orders, or is about to order, the revisits.
        factories: makes policies by name.
    """

    __slots__ = ("_known", "_made", "_policy_of", "_weights", "factories", "policy_name")

    def __init__(self, policy_name: str) -> None:
        self.policy_name = policy_name
        self.factories: Mapping[str, PolicyFactory] = FACTORIES
        self._policy_of = policy_name
        self._made: Policy = _EMPTY
        self._known: VisitedPages | None = None  # to be loaded by the policy
        self._weights: dict[int, float] = {}

    @property
    def _policy(self) -> Policy:
        if self._known is not None:
            known, self._known = self._known, None
            self._own_policy().load(known.pages, known.last_visit_at, known.weights)
        return self._made

    @_policy.setter
    def _policy(self, policy: Policy) -> None:
        self._made = policy

    def _own_policy(self) -> Policy:
        if self._policy is _EMPTY:
            self._policy = self.factories[self._policy_of]()
        return self._policy

    def _load(self, known: VisitedPages) -> None:
        """Load visited pages of the file into a policy that has none."""
        if len(known.pages) <= LOADED_LATER:
            # Copies: views would hold the arrays of all hosts.
            weights = None if known.weights is None else known.weights.copy()
            known = VisitedPages(known.pages.copy(), known.last_visit_at.copy(), weights)
            self._known = known
        else:
            self._own_policy().load(known.pages, known.last_visit_at, known.weights)

    def _keep_weights(self, known: VisitedPages) -> None:
        if known.weights is not None:
            unusual = np.flatnonzero(known.weights != 1.0)
            pages = known.pages[unusual].tolist()
            weights = known.weights[unusual].tolist()
            self._weights = dict(zip(pages, weights, strict=True))

    @property
    def uses_models(self) -> bool:
        """Whether the policy reads the change model of a page after each visit."""
        return self._policy_of == "index" or ":" in self._policy_of

    @property
    def policy(self) -> Policy:
        """The policy that orders the revisits now."""
        return self._policy

    @property
    def _hint_counts(self) -> tuple[int, int]:
        policy = self._made  # pages that are not loaded have no hints
        return policy.hint_counts if isinstance(policy, IndexPolicy) else (0, 0)

    def affected_due_at(self, now: float) -> float:
        """Return until when (Unix seconds) the first user of an edited template is due, or ∞."""
        policy = self._made
        return policy.affected_due_at(now) if isinstance(policy, IndexPolicy) else math.inf

    def _edited_due_at(self, now: float) -> float:
        """Return until when (Unix seconds) the first edited page is due, or ∞."""
        policy = self._made
        return policy.due_at(now) if isinstance(policy, IndexPolicy) else math.inf

    def set_models(self, pages: npt.NDArray[np.int64], records: Records, site: SiteModel) -> None:
        """Pass change models to the policy.

        Args:
            pages: page numbers; unknown ones are skipped.
            records: their change models, same order.
            site: the fitted models of their site.
        """
        if isinstance(self._policy, IndexPolicy):
            self._policy.set_site_model(site)
            self._policy.set_models(pages, records)
        elif isinstance(self._policy, GreedyPolicy):
            self._policy.set_renewals(pages, fit_renewals(records))

    def set_weight(self, page: int, weight: float) -> None:
        """Set the importance of a page."""
        if weight != self._weights.get(page, 1.0):
            self._weights[page] = weight
            self._policy.set_weight(page, weight)

    def known_until(self, page: int, visited_at: float, now: float) -> float:
        """Return until when all changes of a page are known (`IndexPolicy.known_until`)."""
        if isinstance(self._policy, IndexPolicy):
            return self._policy.known_until(page, visited_at, now)
        return visited_at

    def set_coverage(self, missed_share: float, lag_s: float) -> None:
        """Set which share of the changes has no hint, and the lag of hints in seconds."""
        if isinstance(self._policy, IndexPolicy):
            self._policy.set_coverage(missed_share, lag_s)
