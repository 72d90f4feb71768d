"""Queue of the pages of one site on one host: selects the page for the next turn.

Derived state, rebuilt from the file at start. A page is in one of five places:

    ahead      never visited: a short breadth-first look-ahead, the rest waits in the file
    policy     visited and open to selection, in the policy's order
    again      to be visited in the next turn, to learn noise, or for an audit
    resting    visited less than `min_revisit_s` ago, without a reliable hint since
    retries    failed, blocked or gone, with a retry time of its own

Between `take` and `visited`, `retry` or `put_back` a page is in none of them, so that it
is never in flight twice. Pages out of every scope are left out until the scopes change. New pages
and revisits share the turns: new pages use all until a revisit is due, then `discovery_share`
of them. Of the revisits, those with a due time come first (`core/revisit/due.py`).

The policy can be replaced while the crawl runs. The old one is used until the pages are read from
the file; pages in flight or resting then enter the new one after their visit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from crawld.core.revisit.due import AT_ONCE, Due
from crawld.core.revisit.policies import VisitObservation
from crawld.core.revisit.policies_frequency import DelayedPolicy
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.core.revisit.registry import FrequencyPolicy
from crawld.daemon.frontier.left_out import LeftOut
from crawld.daemon.frontier.look_ahead import LookAhead
from crawld.daemon.frontier.ordered_pages import OrderedPages
from crawld.daemon.frontier.rank import Rank
from crawld.daemon.frontier.revisit_queue import (
    AgainQueue,
    LateHint,
    RetryQueue,
    RevisitQueue,
    VisitedPages,
)
from crawld.plugin_host.guarded_policy import GuardedPolicy

RELIABLE_TRUST = 0.5
"""Trust from which a hint ends the rest of a page."""

MAX_IDLE_S = 300.0
"""A policy that selects nothing is asked again after this time at the latest."""

DueTimes = tuple[float, float, float, float]


class PageQueue(OrderedPages):
    """The pages of one site on one host.

    Attributes:
        requisites: whether it holds requisites rather than pages.
        ahead: the never-visited pages.
        left_out: the pages out of every scope.
    """

    __slots__ = (
        "_again",
        "_balance",
        "_discovery_share",
        "_hints",
        "_idle_until",
        "_in_flight",
        "_resting",
        "_retries",
        "_selectable",
        "_since_read",
        "ahead",
        "host_id",
        "left_out",
        "requisites",
        "site_id",
    )

    def __init__(
        self,
        site_id: int,
        host_id: int,
        policy_name: str,
        *,
        discovery_share: float,
        min_revisit_s: float,
        requisites: bool = False,
    ) -> None:
        self.site_id = site_id
        self.host_id = host_id
        self.requisites = requisites
        super().__init__(policy_name)
        self.ahead = LookAhead()
        self.left_out = LeftOut()
        self._in_flight: dict[int, float] = {}  # until when each was to be visited
        self._since_read: dict[int, float] = {}
        self._hints: dict[int, LateHint] = {}
        self._idle_until = -math.inf
        self._discovery_share = discovery_share
        self._again = AgainQueue()
        self._resting = RevisitQueue(min_revisit_s)
        self._retries = RetryQueue()
        self._selectable = 0
        self._balance = 0.0

    # --- adding --------------------------------------------------------------------------------

    def load_visited(self, known: VisitedPages, now: float) -> None:
        """Load the visited pages of the file at start; `now` in Unix seconds."""
        self._keep_weights(known)
        pages = known.pages
        last_visit_at = known.last_visit_at
        rested = int(np.searchsorted(last_visit_at, now - self._resting.rest_s, side="right"))
        weights = None if known.weights is None else known.weights[:rested]
        self._load(VisitedPages(pages[:rested], last_visit_at[:rested], weights))
        self._selectable += rested
        young = zip(pages[rested:].tolist(), last_visit_at[rested:].tolist(), strict=True)
        # After the clock was set back, a visit stored in the future rests no longer than others.
        for page, visited_at in young:
            self._resting.add(min(visited_at, now), page)

    def load_retry(self, page: int, retry_at: float, due_at: float = math.inf) -> None:
        """Load a page that has a retry time, and perhaps a due time."""
        self._retries.add(page, retry_at, due_at)

    def add_new(self, pages: Iterable[int], *, soon: bool = False) -> None:
        """Add pages just admitted; beyond the look-ahead they stay in the file.

        Args:
            soon: whether they go to the front; some may be queued already, or have been visited
                since the file was read.
        """
        if soon:
            # New requisites come here directly: none was visited yet.
            held = self.ahead.held
            known = held if self.requisites else held | self.out_of_policy()
            self.ahead.add_first(p for p in pages if p not in known and p not in self._policy)
        else:
            self.ahead.add(pages)

    # --- taking --------------------------------------------------------------------------------

    @property
    def rank(self) -> Rank:
        """The rank of the most urgent pages; hints since the last turn count as edits."""
        edited, affected = self._hint_counts
        if self._again.is_dated or edited or self._retries.has_recalled or self._resting.has_hints:
            return Rank.EDITED
        if self.ahead:
            return Rank.NEW
        return Rank.AFFECTED if affected else Rank.REVISIT

    @property
    def has_stale(self) -> bool:
        """Whether a page waits whose copy is known, or likely, to be stale."""
        return self.rank is Rank.EDITED or self._hint_counts[1] > 0

    @property
    def has_rest(self) -> bool:
        """Whether a page without a due time waits that is missing, or may have changed."""
        return len(self.ahead) > 0 or self._hint_counts[1] > 0 or self._retries.has_undated

    def due_at(self, now: float) -> float:
        """Return until when (Unix seconds) the page that is due first should be visited, or ∞."""
        self._wake_rested(now)
        return min(self._due_times(now))

    def _due_times(self, now: float) -> DueTimes:
        """Return the first due times of `again`, `retries`, `policy`, new requisites; ∞: none."""
        new_at = self.ahead.due_at(now) if self.requisites else math.inf
        return self._again.due_at, self._retries.due_at(now), self._edited_due_at(now), new_at

    def wanted_at(self, now: float) -> float | None:
        """Return when (Unix seconds) some page may be visited at the earliest; None: never."""
        if self.ahead or self._again:
            return now
        times = (self.revisit_at(now), self._retries.first_at(now))
        return min((at for at in times if at is not None), default=None)

    def revisit_at(self, now: float) -> float | None:
        """Return when (Unix seconds) the policy may select at the earliest; None: never."""
        if self._selectable and not self._idles(now):
            return now
        times = [self._idle_until] if self._selectable else []
        if (rested_at := self._resting.until(now)) is not None:
            times.append(rested_at)
        return min(times, default=None)

    def _idles(self, now: float) -> bool:
        return 0.0 < self._idle_until - now <= MAX_IDLE_S  # further off: the clock was set back

    def take(self, now: float) -> int | None:
        """Take the page to visit now, or None."""
        self._wake_rested(now)
        times = self._due_times(now)
        *others, new_at = times
        due_at = min(others)
        if new_at < due_at:
            return self.take_new()
        # New requisites wait for those that are stale; new pages share the turns with stale ones.
        if self._balance >= 0 and due_at > AT_ONCE and not (self.requisites and due_at < math.inf):
            new = self.take_new()
            return self._take_revisit(now, times) if new is None else new
        revisit = self._take_revisit(now, times)
        return self.take_new() if revisit is None else revisit

    def take_rest(self, now: float) -> int | None:
        """Take a page without a due time that is missing, or may have changed; or None."""
        self._wake_rested(now)
        page = self._retries.take(now)
        if page is None:
            if isinstance(self._policy, IndexPolicy) and self._selectable:
                page = self._policy.select_affected(now)
            if page is None:  # new requisites have turns of their own
                return None if self.requisites else self.take_new()
            self._selectable -= 1
        self._in_flight[page] = math.inf
        return page

    def select(self, now: float) -> int | None:
        """Take the page that the policy selects, for a replica's turn; or None."""
        self._wake_rested(now)
        if not self._selectable or self._idles(now):
            return None
        page = self._select(now)
        if page is not None:
            self._in_flight[page] = math.inf
        return page

    def _wake_rested(self, now: float) -> None:
        for visited_at, page, observation in self._resting.take_rested(now):
            if page not in self._policy:
                self._own_policy().add(page, visited_at, self._weights.get(page, 1.0))
            if self.switching:
                self._since_read[page] = visited_at
            if observation is not None:
                self._policy.record_visit(page, visited_at, observation)
            self._record_late(page)
            self._selectable += 1

    def _record_late(self, page: int) -> None:
        if (late := self._hints.pop(page, None)) is not None:
            late.record(self._policy, page)

    def take_new(self) -> int | None:
        """Take a page that was never visited, or None."""
        page = self.ahead.take()
        if page is None:
            return None
        self._balance = max(self._balance - (1.0 - self._discovery_share), -1.0)
        return page

    def _take_revisit(self, now: float, times: DueTimes) -> int | None:
        again_at, retry_at, edited_at, _ = times
        page, due_at = None, math.inf
        if again_at < math.inf and again_at <= min(retry_at, edited_at):
            page, due_at = self._again.take(), again_at
        elif retry_at < math.inf and retry_at <= edited_at:
            page, due_at = self._retries.take_due(), retry_at
        elif edited_at == math.inf:
            page = self._retries.take(now)
            if page is None and self._again and not self._hint_counts[1]:
                page = self._again.take()  # at leisure
        if page is None and self._selectable and not self._idles(now):
            page = self._select(now)
        if page is not None:
            self._in_flight[page] = due_at
            self._balance = min(self._balance + self._discovery_share, 1.0)
        return page

    def _select(self, now: float) -> int | None:
        page = self._policy.select(now)
        if page is not None:
            self._selectable -= 1
        elif isinstance(self._policy, DelayedPolicy | GuardedPolicy):
            self._idle_until = min(self._policy.next_due_at(), now + MAX_IDLE_S)
        else:  # asking again at once would spin
            self._selectable = 0
        return page

    # --- putting back --------------------------------------------------------------------------

    def put_back(self, page: int) -> None:
        """Put back a page that was taken and not requested."""
        self._in_flight.pop(page, None)
        if page in self.ahead.held:
            self.ahead.put_back(page)
        elif page in self._policy:
            self._policy.release(page)
            self._record_late(page)
            self._selectable += 1
        else:
            self._retries.add_recalled(page, AT_ONCE)

    def visited(
        self,
        page: int,
        now: float,
        observation: VisitObservation,
        weight: float = 1.0,
        *,
        asked_at: float | None = None,
    ) -> None:
        """Put back a page after a conclusive visit; it rests first, unless it changed meanwhile.

        Args:
            asked_at: time of the request, whose page the visit shows; None: that of the response.
        """
        if weight != 1.0:
            self._weights[page] = weight
        self._in_flight.pop(page, None)
        self._resting.add(now, page, observation)
        late = self._hints.pop(page, None)
        if late is not None and late.changed_at > (now if asked_at is None else asked_at):
            self._hints[page] = late = late.after(now)
            if late.trust >= RELIABLE_TRUST:
                self._resting.hinted(page, late.changed_at)

    def visit_again(self, page: int) -> None:
        """Put back a page for the next turn, to learn its noise."""
        self._in_flight.pop(page, None)
        self._again.add(page, AT_ONCE)

    def visit_until(self, page: int, due_at: float) -> None:
        """Let a visited page be visited until a time (Unix seconds), wherever it is queued.

        Args:
            due_at: `AT_ONCE` is the next turn, `AT_LEISURE` one before ordinary revisits.
        """
        self._again.advance(page, due_at)
        if page in self._in_flight or page in self._again:
            return
        if not (self._retries.drop(page) | self._resting.drop({page})):
            if page not in self._policy:
                return
            self._policy.remove(page)
            self._selectable -= 1
        self._again.add(page, due_at)

    def retry(self, page: int, retry_at: float, *, gone_at: float = math.inf) -> None:
        """Put back a page without a good copy, or a requisite, to be visited at `retry_at`.

        Args:
            retry_at: Unix seconds.
            gone_at: time of a request that found no page, or of one for a requisite.
        """
        # A hint of a later change, which came during the visit, says that it is back.
        late = self._hints.get(page)
        is_back = late is not None and late.changed_at > gone_at
        due_at, policy = math.inf, self._policy
        if gone_at == math.inf:
            due_at = self._in_flight.get(page, math.inf)
            if isinstance(policy, IndexPolicy):
                due_at = min(due_at, policy.due_at_of(page))
        self.drop(page)
        if is_back and self.requisites and late is not None and late.due is not None:
            self._retries.add(page, 0.0)
            self._retries.recall({page}, late.due.at)
        elif is_back:
            self._retries.add_recalled(page, AT_ONCE)
        else:
            self.load_retry(page, retry_at, due_at)

    def leave_out(self, page: int) -> None:
        """Leave out a page that is out of scope, until `reconsider`."""
        self.drop(page)
        self.left_out.add(page)

    def reconsider(self) -> None:
        """Queue the pages left out again: the scopes have changed."""
        self.ahead.more |= self.left_out.all
        for page in self.left_out.pages:
            if page in self.ahead.held:
                self.ahead.held.discard(page)
                self.ahead.more = True
            else:
                self._retries.add_recalled(page, AT_ONCE)
        self.left_out.forget()

    def resume(self, pages: Mapping[int, bool]) -> None:
        """Queue suspended pages of a replica again: each with whether it was visited before."""
        present = self.out_of_policy().union(self.ahead)
        for page, was_visited in pages.items():
            self.left_out.discard(page)
            if page in present or page in self._policy:
                continue
            self.ahead.held.discard(page)
            if was_visited:
                self._retries.add_recalled(page, AT_ONCE)
            else:
                self.ahead.more = True

    @property
    def first_visits(self) -> set[int]:
        """Never-visited pages whose visits are under way, or not yet committed."""
        return self.ahead.held - self.left_out.pages

    @property
    def under_way(self) -> set[int]:
        """Pages whose visits are under way, or not yet committed."""
        return self._in_flight.keys() | self.first_visits

    def out_of_policy(self) -> set[int]:
        """Return visited pages that the policy may not select now, or not yet again."""
        return set(self._resting).union(self._in_flight, self._again, self._retries)

    def drop(self, page: int) -> None:
        """Remove a page: it was excluded, or visited by a one-off mirror."""
        self._in_flight.pop(page, None)
        self._hints.pop(page, None)
        self._policy.remove(page)

    def mark_recorded(self, page: int) -> None:
        """Note that the file no longer lists a page as discovered, so that no refill brings it."""
        self.ahead.held.discard(page)

    # --- hints ---------------------------------------------------------------------------------

    def add_hint(
        self,
        page: int,
        changed_at: float,
        trust: float,
        *,
        indirect: bool = False,
        due: Due | None = None,
    ) -> None:
        """Add a hint about a visited page, as `Policy.record_hint`; a reliable one ends a rest."""
        given = LateHint(changed_at, trust, indirect, due)
        if page in self._policy and page not in self._in_flight:
            given.record(self._policy, page)
        else:
            self._hints[page] = given.joined(self._hints.get(page))
            if not indirect:
                due = Due.of_edit(changed_at, changed_at) if due is None else due
                self._again.advance(page, due.at)
                self._retries.advance(page, due.at)
        if trust >= RELIABLE_TRUST:
            self._resting.hinted(page, changed_at)

    def recall(self, pages: set[int], due_at: float, *, changed_at: float | None = None) -> None:
        """Let pages that wait for a retry be visited until a time (Unix seconds), if here.

        Args:
            changed_at: those whose visit is under way are visited again if it was requested before
                this time; None: they are not.
        """
        self._retries.recall(pages, due_at)
        if changed_at is not None:
            due = Due.by(due_at)
            for page in pages & self.under_way:
                self._hints[page] = LateHint(changed_at, 1.0, indirect=False, due=due)

    # --- frequencies ----------------------------------------------------------------------------

    def set_frequencies(
        self, pages: npt.NDArray[np.int64], frequency: npt.NDArray[np.float64]
    ) -> None:
        """Pass the revisit frequencies of an allocation to the policy, if it uses them.

        Args:
            pages: page numbers; unknown ones are skipped.
            frequency: visits per second of each, same length.
        """
        if isinstance(self._policy, FrequencyPolicy):
            self._policy.set_frequencies(pages, frequency)
            self._idle_until = -math.inf

    # --- another policy ------------------------------------------------------------------------

    @property
    def switching(self) -> bool:
        """Whether a new policy waits for its pages (`switch`)."""
        return self.policy_name != self._policy_of

    def switch(self, known: VisitedPages) -> None:
        """Replace the policy by that of `policy_name`.

        Args:
            known: visited pages read after it was named, including those in flight and resting.
        """
        former = self._policy
        policy = self.factories[self.policy_name]()
        self._keep_weights(known)
        out = {*self._in_flight, *self._again, *self._resting}
        stays = former.contains_many(known.pages) & ~np.isin(known.pages, list(out))
        weights = None if known.weights is None else known.weights[stays]
        policy.load(known.pages[stays], known.last_visit_at[stays], weights)
        for page, visited_at in self._since_read.items():
            # Its first visit came after the file was read.
            if page in former and page not in out:
                policy.add(page, visited_at, self._weights.get(page, 1.0))
        self._since_read.clear()
        self._policy = policy
        self._policy_of = self.policy_name
        self._selectable = len(policy)
        self._idle_until = -math.inf
