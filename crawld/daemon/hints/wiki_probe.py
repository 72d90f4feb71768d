"""A MediaWiki probed: the newest revisions of the pages held, many a request, round after round.

What the probe before said is remembered with each page. A page shows something else where its
revision is another, where it came or went, or, possibly, where the wiki made it anew without a new
revision: a template or a category changed. Where a visit came so soon after an edit that instants
do not tell, the copy is asked which revision it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import apsw

from crawld.core.page import Outcome
from crawld.daemon.hints.source import Poll, PollTrouble
from crawld.daemon.hints.wiki_source import LOOK_S, ClockSkew, WikiSource
from crawld.sources.mediawiki_api import ApiTroubleKind, batch
from crawld.sources.mediawiki_changes import PendingTemplates, ProbeProgress
from crawld.sources.mediawiki_history import PageInfo, read_titles, titles_query
from crawld.sources.mediawiki_site import shown_revision
from crawld.store.changes import wiki_probe
from crawld.store.changes.hint import PageHint
from crawld.store.changes.hint_source import SourceRow
from crawld.store.changes.wiki_probe import ProbePage, ProbeResult
from crawld.store.versions import version

CLOSE_S: Final = 120.0
"""A visit so soon after an edit may have got what was there before: its copy is asked which."""

PROBE_PAUSE_FACTOR: Final = 10.0
"""Beside recent changes a probe is asked for so many times less often."""

GAP_PAUSE_FACTOR: Final = 2.0
"""The same while it makes good a gap."""

MAX_TOUCHED: Final = 20_000

_GONE = (Outcome.GONE, Outcome.SOFT_GONE)


class ProbeSource(WikiSource):
    """The newest revisions of the pages held, many a request."""

    kind = "probe"

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Ask for the next pages of the round."""
        place, asked_at = ProbeProgress.from_json(row.cursor), self.clock.now()
        if not place.after:
            place = replace(place, began_at=asked_at)
        pages = await self.database.read(
            wiki_probe.next_pages, self.wiki.row.wiki_id, place.after, limit=place.titles
        )
        if not pages:
            return self._round_over(place, asked_at)
        titles = batch(list(dict.fromkeys(page.title for page in pages)), place.titles)
        last = len(titles) == len({page.title for page in pages}) and len(pages) < place.titles
        pages = [page for page in pages if page.title in titles]
        answer = await self.ask({**titles_query(titles), "curtimestamp": 1}, row)
        if isinstance(answer, PollTrouble):
            return self._fewer(answer, place, len(titles))
        now, shown = self.clock.now(), read_titles(answer, titles)
        clocks = ClockSkew(answer.served_at, now)
        known = [page for page in pages if page.title in shown and not shown[page.title].refused]
        close = [page for page in known if _is_close(page, shown[page.title], clocks)]
        copies = await self.database.read(_revisions, close) if close else {}
        findings = [
            _compare(page, shown[page.title], clocks, copies.get(page.page_id)) for page in known
        ]
        alone = last and place.began_at == asked_at
        after, urgent = (0, False) if last else (pages[-1].page_id, place.urgent)
        return Poll(
            at=now,
            pages=[found.revised for found in findings if found.revised],
            cursor=replace(place, after=after, urgent=urgent).to_json(),
            told_until=place.began_at - 1.0 if last else None,
            pause_factor=1.0 if alone else GAP_PAUSE_FACTOR if place.urgent else PROBE_PAUSE_FACTOR,
            cursor_updates=await self._update_fan_out(
                [found.touched for found in findings if found.touched]
            ),
            also_write=partial(_store_probes, said=[found.said for found in findings]),
        )

    def _round_over(self, place: ProbeProgress, now: float) -> Poll:
        over = replace(place, after=0, urgent=False).to_json()
        told_until = place.began_at - 1.0 if place.after else None
        return Poll(at=now, cursor=over, requests=0, told_until=told_until, wait_s=LOOK_S)

    def _fewer(self, trouble: PollTrouble, place: ProbeProgress, titles: int) -> Poll | PollTrouble:
        """Name fewer titles the next time, where so many were the trouble."""
        if trouble.trouble != ApiTroubleKind.TOO_MANY or titles <= 1:
            return trouble
        stated = trouble.limit or titles
        fewer = replace(place, titles=stated if stated < titles else titles // 2).to_json()
        return Poll(at=self.clock.now(), cursor=fewer)

    async def _update_fan_out(self, pages: Sequence[PageHint]) -> list[tuple[int, str | None]]:
        if not pages:
            return []
        number, text = await self.sibling("fan_out")
        wanted = PendingTemplates.from_json(text)
        spans = tuple((page.page_id, page.first_at, page.last_at) for page in pages)
        return [(number, replace(wanted, pages=(wanted.pages + spans)[:MAX_TOUCHED]).to_json())]


@dataclass(frozen=True, slots=True)
class _ProbeResult:
    """What a probe says of one page.

    Attributes:
        said: what the next probe is compared with.
        revised: the page shows another revision, or came, or went.
        touched: the page was made anew without a new revision.
    """

    said: ProbeResult
    revised: PageHint | None = None
    touched: PageHint | None = None


def _is_close(page: ProbePage, shown: PageInfo, clocks: ClockSkew) -> bool:
    """Whether a page was visited so soon after its newest revision that it may not have it."""
    if not shown.revisions or shown.revisions[0].revision_id == page.revision_id:
        return False
    return 0.0 <= page.last_visit_at - clocks.span(shown.revisions[0].at)[0] <= CLOSE_S


def _revisions(connection: apsw.Connection, pages: Sequence[ProbePage]) -> dict[int, int]:
    """Return which revisions copies show, as far as they say; on a reader's thread."""
    found = {}
    for page in pages:
        body = version.read_body(connection, page.version_id) if page.version_id else None
        if body and (revision_id := shown_revision(body)) is not None:
            found[page.page_id] = revision_id
    return found


def _compare(
    page: ProbePage, shown: PageInfo, clocks: ClockSkew, copied: int | None = None
) -> _ProbeResult:
    """Compare a page with its last visit and with what the probe before said of it.

    Args:
        page: the page.
        shown: what the wiki says of it.
        clocks: of this answer.
        copied: the revision its copy shows, where instants are too close to tell.
    """
    now, newest = clocks.now, shown.revisions[0] if shown.revisions else None
    revision_id = newest.revision_id if newest and shown.number is not None else None
    said = ProbeResult(page.page_id, revision_id, shown.touched_at, now)
    since = page.probed_at if page.probed_at is not None else page.last_visit_at
    some_time = PageHint(page.page_id, min(since, now), now)
    if (revision_id is None) != (page.last_outcome in _GONE):
        return _ProbeResult(said, revised=some_time)
    if newest is None or revision_id is None:
        return _ProbeResult(said)
    if copied is not None:
        return _ProbeResult(said, revised=None if copied == revision_id else some_time)
    first_at, last_at = clocks.span(newest.at)
    if page.revision_id is None:
        new = last_at > page.last_visit_at
    else:
        new = revision_id != page.revision_id
    if new:
        # What is older than the probe before, and was not there then, was imported or restored.
        dated = page.probed_at is None or last_at >= page.probed_at
        return _ProbeResult(said, PageHint(page.page_id, first_at, last_at) if dated else some_time)
    if shown.touched_at is None or shown.touched_at == page.touched_at:
        return _ProbeResult(said)
    first_at, last_at = clocks.span(shown.touched_at)
    late = last_at > page.last_visit_at
    return _ProbeResult(said, touched=PageHint(page.page_id, first_at, last_at) if late else None)


def _store_probes(connection: apsw.Connection, *, said: Sequence[ProbeResult]) -> None:
    wiki_probe.put(connection, said)
