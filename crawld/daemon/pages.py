"""The pages of one site on one host, in memory: which of them should have the host's next turn.

Derived state, rebuilt from the file at start. Five places, a page is in one of them:

    ahead      never visited, a short breadth-first look-ahead; the rest waits in the file
    policy     visited and open to selection, in the policy's order
    again      to be visited in the very next turn, to see what changes by itself
    resting    visited less than `min_revisit_s` ago
    retries    failed, blocked or gone, with an instant of its own

Between `take` and `visited`, `failed`, `deferred` or `returned` a page is in none of them, so it is
never in flight twice. Pages that no scope has any more are left out until the scopes change. New
pages and revisits share the turns: new pages get them all until a revisit is due, then
`discovery_share` of them.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from crawld.core.revisit.policies import Observation, Policy

LOOK_AHEAD = 256
"""Pages of the frontier held in memory per host and site."""


class HostPages:
    """The pages of one site on one host.

    Attributes:
        site_id: the site they belong to.
        host_id: the host they live on.
        more: whether the file holds never-visited pages beyond the look-ahead.
        held: never-visited pages taken and not yet recorded: a refill must not bring them again.
    """

    __slots__ = (
        "_again",
        "_ahead",
        "_balance",
        "_discovery_share",
        "_left_out",
        "_min_revisit_s",
        "_policy",
        "_resting",
        "_retries",
        "_selectable",
        "held",
        "host_id",
        "more",
        "site_id",
    )

    def __init__(
        self,
        site_id: int,
        host_id: int,
        policy: Policy,
        *,
        discovery_share: float,
        min_revisit_s: float,
    ) -> None:
        self.site_id = site_id
        self.host_id = host_id
        self.more = False
        self.held: set[int] = set()
        self._left_out: set[int] = set()
        self._policy = policy
        self._discovery_share = discovery_share
        self._min_revisit_s = min_revisit_s
        self._again: tuple[int, ...] = ()
        self._ahead: deque[int] = deque()
        self._resting: deque[tuple[float, int, Observation | None]] = deque()
        self._retries: list[tuple[float, int]] = []
        self._selectable = 0
        self._balance = 0.0

    # --- coming in -----------------------------------------------------------------------------

    def load_visited(
        self,
        pages: npt.NDArray[np.int64],
        last_visit_at: npt.NDArray[np.float64],
        now: float,
    ) -> None:
        """Take the visited pages from the file, the oldest visit first.

        Args:
            pages: page numbers.
            last_visit_at: their last visits, Unix seconds, ascending; same length.
            now: Unix seconds.
        """
        rested = int(np.searchsorted(last_visit_at, now - self._min_revisit_s, side="right"))
        self._policy.load(pages[:rested], last_visit_at[:rested])
        self._selectable += rested
        young = zip(pages[rested:].tolist(), last_visit_at[rested:].tolist(), strict=True)
        # A visit stored in the future (the clock was set back) rests no longer than others.
        self._resting.extend((min(visited_at, now), page, None) for page, visited_at in young)

    def load_retry(self, page: int, retry_at: float) -> None:
        """Take a page whose next visit has an instant of its own."""
        heapq.heappush(self._retries, (retry_at, page))

    def discovered(self, pages: Iterable[int]) -> None:
        """Take pages just admitted; beyond the look-ahead they stay in the file."""
        for page in pages:
            if self.more or len(self._ahead) >= LOOK_AHEAD:
                self.more = True
                return
            self._ahead.append(page)

    def refill(self, pages: list[int], *, asked: int) -> None:
        """Take the next pages of the frontier, read from the file in breadth-first order.

        Args:
            pages: what the file gave.
            asked: how many it was asked for; fewer mean that it holds no more.
        """
        present = set(self._ahead)
        fresh = [page for page in pages if page not in self.held and page not in present]
        self._ahead.extend(fresh)
        self.more = len(pages) >= asked

    @property
    def wants_refill(self) -> bool:
        """Whether the look-ahead is low and the file has more."""
        return self.more and len(self._ahead) < LOOK_AHEAD // 4

    # --- going out -----------------------------------------------------------------------------

    def wanted_at(self, now: float) -> float | None:
        """Return the earliest instant (Unix seconds) some page may be visited; None: none ever."""
        if self._ahead or self.more or self._selectable or self._again:
            return now
        instants = [self._retries[0][0]] if self._retries else []
        if self._resting:
            instants.append(self._resting[0][0] + self._min_revisit_s)
        return min(instants, default=None)

    def take(self, now: float) -> int | None:
        """Take the page that should be visited now, or None."""
        if self._again:
            page, *rest = self._again
            self._again = tuple(rest)
            return page
        self._wake_rested(now)
        if self._balance >= 0:
            new = self._take_new()
            return self._take_revisit(now) if new is None else new
        revisit = self._take_revisit(now)
        return self._take_new() if revisit is None else revisit

    def _wake_rested(self, now: float) -> None:
        while self._resting and self._resting[0][0] + self._min_revisit_s <= now:
            visited_at, page, observation = self._resting.popleft()
            if page not in self._policy:
                self._policy.add(page, visited_at)
            if observation is not None:
                self._policy.visited(page, visited_at, observation)
            self._selectable += 1

    def _take_new(self) -> int | None:
        if not self._ahead:
            return None
        page = self._ahead.popleft()
        self.held.add(page)
        self._balance = max(self._balance - (1.0 - self._discovery_share), -1.0)
        return page

    def _take_revisit(self, now: float) -> int | None:
        page: int | None
        if self._retries and self._retries[0][0] <= now:
            page = heapq.heappop(self._retries)[1]
        elif self._selectable:
            page = self._policy.select(now)
            # A policy that names none has none: asking again at once would only spin.
            self._selectable = 0 if page is None else self._selectable - 1
        else:
            return None
        if page is not None:
            self._balance = min(self._balance + self._discovery_share, 1.0)
        return page

    # --- coming back ---------------------------------------------------------------------------

    def returned(self, page: int) -> None:
        """Put back a page that was taken and not asked for."""
        if page in self.held:
            self.held.discard(page)
            self._ahead.appendleft(page)
        elif page in self._policy:
            self._policy.released(page)
            self._selectable += 1
        else:
            self.load_retry(page, 0.0)

    def visited(self, page: int, now: float, observation: Observation) -> None:
        """Put back a page after a visit that found its present state; it rests first."""
        self._resting.append((now, page, observation))

    def again(self, page: int) -> None:
        """Put back a page to be visited in the very next turn, to see what changes by itself."""
        self._again = (*self._again, page)

    def failed(self, page: int, retry_at: float) -> None:
        """Put back a page that gave no good copy; it comes again at an instant of its own."""
        self._policy.remove(page)
        self.load_retry(page, retry_at)

    def deferred(self, page: int, until: float) -> None:
        """Put back a page that could not be asked for now; it comes again at that instant."""
        self.failed(page, until)

    def left_out(self, page: int) -> None:
        """Leave out a page that is in no scope, until `reconsider`."""
        self._policy.remove(page)
        self._left_out.add(page)

    def reconsider(self) -> None:
        """Bring back what was left out: the scopes have changed."""
        for page in self._left_out:
            if page in self.held:
                self.held.discard(page)
                self.more = True
            else:
                self.load_retry(page, 0.0)
        self._left_out.clear()

    def forgotten(self, page: int) -> None:
        """Leave out a page that was excluded, or visited by a one-off mirror."""
        self._policy.remove(page)

    def recorded(self, page: int) -> None:
        """Note that the file counts a page as discovered no more: a refill no longer brings it."""
        self.held.discard(page)
