"""Deliver stored hints to the revisit policies of their pages.

One poll may return thousands of hints: they are delivered in slices, so that no fetch slot waits
for longer than a slice.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

import trio

from crawld.core.page import Outcome
from crawld.core.revisit.due import AT_LEISURE, RETRY_S, Due
from crawld.daemon.crawl.context import BackgroundWork
from crawld.daemon.frontier.page_queue import RELIABLE_TRUST
from crawld.store.changes import fan_out, hint, hint_source
from crawld.store.changes.hint import FAN_OUT, AcceptedHint, OutstandingHint
from crawld.store.changes.hint_source import SourceRow
from crawld.store.changes.wiki_requisite import StaleRequisite
from crawld.store.frontier.removal import RemovedPage

SLICE_S: Final = 0.002
"""Longest time without a checkpoint."""

RESTORED_AT_ONCE: Final = 4_096
"""Outstanding hints read in one query."""

INDIRECT_KINDS: Final = frozenset({hint.FAN_OUT, hint.GAP})
"""Kinds of sources that name pages which may have changed: their pages come after those that
another source reports as edited."""

_GONE = (Outcome.GONE, Outcome.SOFT_GONE, Outcome.MOVED)


class HintDelivery(BackgroundWork):
    """Hands hints to the policies of their pages."""

    def under_way(self, row: SourceRow) -> list[int]:
        """Return the pages of a source whose visits are under way, or not yet committed."""
        host = self._state.hosts.get(row.host)
        queues = [host.pages.get(site_id) for site_id in row.site_ids] if host else []
        return [page for queue in queues if queue is not None for page in queue.under_way]

    async def deliver(
        self, row: SourceRow, accepted: Sequence[AcceptedHint], replaced: Set[int] = frozenset()
    ) -> None:
        """Pass the hints of a source to the policies of their pages.

        Args:
            replaced: numbers of pages at whose URLs there is another page now; due at once.
        """
        host = self._state.hosts.get(row.host)
        if host is None or not accepted:
            return
        trust = trust_of(row)
        indirect = is_indirect(row.kind, trust)
        host.hinted_at = trio.current_time()
        now, until = self._clock.now(), host.hinted_at + SLICE_S
        users = (len(accepted) if row.kind == FAN_OUT else 0) if indirect else None
        for each in accepted:
            if (pages := host.pages.get(each.site_id)) is not None:
                due = _due_of(each.first_at, now, users)
                pages.add_hint(
                    each.page_id,
                    _later(each),
                    trust,
                    indirect=indirect,
                    due=Due.by(now) if each.page_id in replaced else due,
                )
            if trio.current_time() >= until:
                await trio.lowlevel.checkpoint()
                until = trio.current_time() + SLICE_S
        # A page that is gone is reported to be back; one that failed still waits for its retry.
        back = defaultdict(set)
        for each in accepted:
            if each.retry_at is not None and each.last_outcome in _GONE:
                back[each.site_id].add(each.page_id)
        for site_id, page_ids in back.items():
            if (pages := host.pages.get(site_id)) is not None:
                pages.recall(page_ids, now)
        self._state.schedule.wake(host.slot)

    def confirm(self, row: SourceRow, removed: Sequence[RemovedPage]) -> None:
        """Visit pages that a source reports as deleted or moved away; readers see it already."""
        host = self._state.hosts.get(row.host)
        if host is None or not removed:
            return
        for each in removed:
            if (pages := host.pages.get(each.site_id)) is not None:
                pages.visit_until(each.page_id, AT_LEISURE)
        self._state.schedule.wake(host.slot)

    def refresh(self, stale: Sequence[StaleRequisite]) -> None:
        """Fetch requisites again as soon as their hosts allow."""
        hosts = {host.host_id: host for host in self._state.hosts.values()}
        by_queue, now = defaultdict(set), self._clock.now()
        for each in stale:
            due_at = AT_LEISURE if each.is_dense else now + RETRY_S
            by_queue[each.host_id, each.site_id, due_at].add(each.page_id)
        for (host_id, site_id, due_at), page_ids in by_queue.items():
            host = hosts.get(host_id)
            queue = host.requisites.get(site_id) if host else None
            if host is not None and queue is not None:
                queue.recall(page_ids, due_at, changed_at=now)
                self._state.schedule.wake(host.slot)

    async def restore(self, only: Iterable[tuple[int, int]] | None = None) -> int:
        """Deliver the hints that no visit has answered yet; return how many.

        Needed after a start, or for policies that were switched: `only` lists (host_id, site_id).
        """
        hosts = {host.host_id: host for host in self._state.hosts.values()}
        wanted_keys = None if only is None else set(only)
        sources = await self._database.read(hint_source.list_sources)
        trust = {row.hint_source_id: trust_of(row) for row in sources}
        indirect = {
            row.hint_source_id: is_indirect(row.kind, trust[row.hint_source_id]) for row in sources
        }
        listed = await self._database.read(fan_out.users_by_time)
        after, count = (0, 0), 0
        while True:
            rows = await self._database.read(
                hint.list_outstanding, after=after, limit=RESTORED_AT_ONCE
            )
            by_host_and_site = defaultdict(list)
            for row in rows:
                by_host_and_site[row.host_id, row.site_id].append(row)
            for key, outstanding in by_host_and_site.items():
                host = hosts.get(key[0])
                pages = host.pages.get(key[1]) if host else None
                if pages is None or (wanted_keys is not None and key not in wanted_keys):
                    continue
                # A source added after the read delivers its hints itself.
                known = [row for row in outstanding if row.hint_source_id in trust]
                for row in known:
                    number = row.hint_source_id
                    due: Due | None = Due.of_edit(row.first_at, row.heard_at)
                    if indirect[number]:
                        due = _due_of_listings(row, listed)
                    pages.add_hint(
                        row.page_id,
                        _later(row),
                        trust[number],
                        indirect=indirect[number],
                        due=Due.by(AT_LEISURE) if row.is_removed else due,
                    )
                    if row.is_removed:
                        pages.visit_until(row.page_id, AT_LEISURE)
                back = {row.page_id for row in known if row.last_outcome in _GONE}
                pages.recall(back, self._clock.now())
                count += len(known)
                await trio.lowlevel.checkpoint()
            if len(rows) < RESTORED_AT_ONCE:
                return count
            after = (rows[-1].page_id, rows[-1].hint_source_id)


def _later(each: AcceptedHint | OutstandingHint) -> float:
    """Return the latest time of a change, which the last visit of its page did not show."""
    return max(each.last_at, math.nextafter(each.last_visit_at, math.inf))


def _due_of(changed_at: float, heard_at: float, users: int | None) -> Due | None:
    """Return until when a page should be visited; None: the value of the visit decides.

    Args:
        users: of the template whose edit affects the page, 0 if unknown; None: the page itself is
            reported.
    """
    if users is None:
        return Due.of_edit(changed_at, heard_at)
    return Due.of_user(heard_at, users) if users else None


def _due_of_listings(row: OutstandingHint, listed: Mapping[tuple[int, float], int]) -> Due | None:
    """Return until when a user of templates should be visited, by the first and last listing of it.

    Args:
        listed: number of users by source and time of the listing; of a template that was listed
            again since, those that still wait.
    """
    first = listed.get((row.hint_source_id, row.heard_at), 0)
    last = listed.get((row.hint_source_id, row.last_at), 0)
    if not last:
        return Due.of_user(row.heard_at, first) if first else None
    # Of one template, listed twice, the last listing has all its users.
    return min(Due.of_user(row.heard_at, max(first, last)), Due.of_user(row.last_at, last))


def is_indirect(kind: str, trust: float) -> bool:
    """Whether the hints of a source come after reports of edits: it guesses, or is often wrong."""
    return kind in INDIRECT_KINDS or trust < RELIABLE_TRUST


def trust_of(row: SourceRow) -> float:
    """Return the trust in the hints of a source.

    Users of an edited template are visited although many such edits show nothing: they use turns
    that nothing better wants, and one visit too few would leave a page wrong.
    """
    trust = hint.load_reliability(row.evidence).effective_trust
    return max(trust, RELIABLE_TRUST) if row.kind == "fan_out" else trust
