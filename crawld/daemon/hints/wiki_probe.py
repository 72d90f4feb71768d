"""Probe a MediaWiki: query the newest revisions of known pages, 50 per request, in rounds.

The result of each probe is stored with the page. A page changed if its revision differs, if it
appeared or disappeared, or possibly if the wiki rendered it again without a new revision (a
template or category changed). If a visit came too soon after an edit to decide by the times, the
revision named in the stored copy decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from crawld.core.page import Outcome
from crawld.daemon.hints.copied_revision import copied_revisions
from crawld.daemon.hints.source import CursorUpdates, Poll, PollTrouble
from crawld.daemon.hints.wiki_source import LOOK_S, ClockSkew, WikiSource
from crawld.sources.mediawiki_api import TroubleKind, batch
from crawld.sources.mediawiki_changes import PendingTemplates, ProbeProgress
from crawld.sources.mediawiki_history import PageInfo, read_titles, titles_query
from crawld.store.changes import wiki_probe
from crawld.store.changes.hint import PageHint
from crawld.store.changes.hint_source import SourceRow
from crawld.store.changes.wiki_probe import ProbePage, ProbeResult

CLOSE_S: Final = 120.0
"""A visit this soon after an edit may hold the old text: the revision in the copy decides."""

PROBE_PAUSE_FACTOR: Final = 10.0
"""Probes are this many times rarer than their share allows, beside recent changes."""

GAP_PAUSE_FACTOR: Final = 2.0
"""The same while a gap is reconciled."""

MAX_TOUCHED: Final = 20_000

_GONE = (Outcome.GONE, Outcome.SOFT_GONE)


class ProbeSource(WikiSource):
    """Probes the newest revisions of known pages."""

    kind = "probe"

    def is_waiting(self, row: SourceRow) -> bool:
        """Whether the round repairs a gap."""
        return ProbeProgress.from_json(row.cursor).urgent

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Probe the next pages of the round."""
        progress, asked_at = ProbeProgress.from_json(row.cursor), self.clock.now()
        if not progress.after:
            progress = replace(progress, began_at=asked_at)
        pages = await self.database.read(
            wiki_probe.next_pages, self.wiki.row.wiki_id, progress.after, limit=progress.titles
        )
        if not pages:
            return self._round_over(progress, asked_at)
        titles = batch(list(dict.fromkeys(page.title for page in pages)), progress.titles)
        last = len(titles) == len({page.title for page in pages}) and len(pages) < progress.titles
        pages = [page for page in pages if page.title in titles]
        response = await self.ask({**titles_query(titles), "curtimestamp": 1}, row)
        if isinstance(response, PollTrouble):
            return self._query_fewer(response, progress, len(titles))
        now, info = self.clock.now(), read_titles(response, titles)
        skew = ClockSkew(response.served_at, now)
        known = [page for page in pages if page.title in info and not info[page.title].refused]
        uncertain = {
            page.page_id: page.version_id
            for page in known
            if _is_uncertain(page, info[page.title], skew)
        }
        copies = await self.database.read(copied_revisions, uncertain) if uncertain else {}
        results = [
            _compare(page, info[page.title], skew, copies.get(page.page_id)) for page in known
        ]
        after, urgent = (0, False) if last else (pages[-1].page_id, progress.urgent)
        return Poll(
            at=now,
            pages=[found.revised for found in results if found.revised],
            cursor=replace(progress, after=after, urgent=urgent).to_json(),
            told_until=progress.began_at - 1.0 if last else None,
            pause_factor=GAP_PAUSE_FACTOR if progress.urgent else PROBE_PAUSE_FACTOR,
            cursor_updates=await self._update_fan_out(
                [found.touched for found in results if found.touched]
            ),
            also_write=partial(wiki_probe.put, results=[found.stored for found in results]),
        )

    def _round_over(self, progress: ProbeProgress, now: float) -> Poll:
        over = replace(progress, after=0, urgent=False).to_json()
        told_until = progress.began_at - 1.0 if progress.after else None
        return Poll(at=now, cursor=over, requests=0, told_until=told_until, wait_s=LOOK_S)

    def _query_fewer(
        self, trouble: PollTrouble, progress: ProbeProgress, titles: int
    ) -> Poll | PollTrouble:
        """Query fewer titles next time if the wiki rejected so many."""
        if trouble.trouble != TroubleKind.TOO_MANY or titles <= 1:
            return trouble
        stated = trouble.limit or titles
        fewer = replace(progress, titles=stated if stated < titles else titles // 2).to_json()
        return Poll(at=self.clock.now(), cursor=fewer)

    async def _update_fan_out(self, pages: Sequence[PageHint]) -> CursorUpdates:
        if not pages:
            return []
        number, text = await self.sibling("fan_out")
        pending = PendingTemplates.from_json(text)
        spans = tuple((page.page_id, page.first_at, page.last_at) for page in pages)
        return [(number, replace(pending, pages=(pending.pages + spans)[:MAX_TOUCHED]).to_json())]


@dataclass(frozen=True, slots=True)
class _ProbeOutcome:
    """The outcome of a probe of one page.

    Attributes:
        stored: stored for comparison with the next probe.
        revised: hint that the page has another revision, appeared or disappeared.
        touched: hint that the page was rendered again without a new revision.
    """

    stored: ProbeResult
    revised: PageHint | None = None
    touched: PageHint | None = None


def _is_uncertain(page: ProbePage, info: PageInfo, skew: ClockSkew) -> bool:
    """Whether the visit came so soon after the newest revision that it may have missed it."""
    if not info.revisions or info.revisions[0].revision_id == page.revision_id:
        return False
    return 0.0 <= page.last_visit_at - skew.span(info.revisions[0].at)[0] <= CLOSE_S


def _compare(
    page: ProbePage, info: PageInfo, skew: ClockSkew, copied_revision: int | None = None
) -> _ProbeOutcome:
    """Compare a page with its last visit and its last probe.

    Args:
        copied_revision: the revision named in the copy, if times are too uncertain to decide.
    """
    now, newest = skew.now, info.revisions[0] if info.revisions else None
    revision_id = newest.revision_id if newest and info.number is not None else None
    stored = ProbeResult(page.page_id, revision_id, info.touched_at, now)
    since = page.probed_at if page.probed_at is not None else page.last_visit_at
    some_time = PageHint(page.page_id, min(since, now), now)
    if (revision_id is None) != (page.last_outcome in _GONE):
        return _ProbeOutcome(stored, revised=some_time)
    if newest is None or revision_id is None:
        return _ProbeOutcome(stored)
    if copied_revision is not None and copied_revision != revision_id:
        return _ProbeOutcome(stored, revised=some_time)
    first_at, last_at = skew.span(newest.at)
    if copied_revision is not None:
        new = False
    elif page.revision_id is None:
        new = last_at > page.last_visit_at
    else:
        new = revision_id != page.revision_id
    if new:
        # An older revision that the last probe did not see was imported or restored.
        dated = page.probed_at is None or last_at >= page.probed_at
        return _ProbeOutcome(
            stored, PageHint(page.page_id, first_at, last_at) if dated else some_time
        )
    # A copy of the newest revision may still show an older text of a template.
    if info.touched_at is None or info.touched_at == page.touched_at:
        return _ProbeOutcome(stored)
    first_at, last_at = skew.span(info.touched_at)
    late = last_at > page.last_visit_at
    return _ProbeOutcome(
        stored, touched=PageHint(page.page_id, first_at, last_at) if late else None
    )
