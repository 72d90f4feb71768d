"""The response stage of plug-ins in a visit: what they see, and where they run.

A hook whose calls are short runs on the event loop, others on a thread that no analysis waits for;
a new hook shows on a thread first how long it takes. A call that exceeds its time is abandoned, and
its plug-in is disabled: Python cannot end a thread.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import apsw
import trio

from crawld.core.content.analysis import read_blocks
from crawld.daemon.analyser import Analyser
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.change_detection import ChangeDetector
from crawld.daemon.visit.comparison import BodyComparison
from crawld.daemon.visit.content import PageContent
from crawld.memory import FREE_BYTES, MIB
from crawld.net.exchange import FetchResponse
from crawld.plugin_host.plugin import FAILED, Hook
from crawld.plugin_host.response_stage import (
    NO_VERDICT,
    JoinedVerdict,
    ResponseStage,
    Tags,
)
from crawld.plugins import KnownPage, PreviousCopy, Reading
from crawld.store.engine.database import Database
from crawld.store.frontier.page import PageRecord
from crawld.store.versions import version_tag

MAX_READ_BYTES: Final = 8 * MIB
"""Larger pages, which are very few, are not shown to plug-ins: what they take is not known."""

MEMORY_FACTOR: Final = 8
"""Memory that a plug-in takes for a page, as a multiple of both bodies, about: a tree of lxml."""

THREADS: Final = 2
"""Calls of plug-ins on threads at once, abandoned ones included."""


def facts_of(page: PageRecord, site: ActiveSite) -> KnownPage:
    """Return what plug-ins see of a page."""
    return KnownPage(
        page.url,
        site.name,
        page.host,
        page.depth,
        page.importance,
        page.visit_count,
        page.last_visit_at,
        page.last_change_at,
        page.title,
    )


class ResponseHooks:
    """Asks plug-ins about the pages that are received."""

    def __init__(
        self,
        stage: ResponseStage,
        detector: ChangeDetector,
        database: Database,
        analyser: Analyser,
    ) -> None:
        self._stage = stage
        self._detector = detector
        self._database = database
        self._analyser = analyser
        self._limiter = trio.CapacityLimiter(THREADS)

    async def ask(
        self,
        page: PageRecord,
        site: ActiveSite,
        response: FetchResponse,
        comparison: BodyComparison | None,
        content: PageContent,
        version_id: int | None,
    ) -> JoinedVerdict:
        """Return what plug-ins decide about a good answer with a new body.

        Args:
            version_id: the copy to compare with; None: there is none.
        """
        hooks = self._stage.serving(site.name)
        if not hooks or len(response.body) > MAX_READ_BYTES:
            return NO_VERDICT
        previous, kept = await self._previous(page, version_id, response)
        same = comparison is not None and comparison.same
        reading = Reading(
            page=facts_of(page, site),
            body=response.body,
            content_type=content.content_type,
            charset=content.charset,
            status=response.status,
            headers=tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in response.headers),
            title=content.title,
            links=content.urls,
            previous=previous,
            changed=not same,
            difference=comparison.difference if comparison is not None else None,
            read_text=_text_reader(response, comparison),
        )
        answers = [(hook, await self._answer(hook, reading, kept)) for hook in hooks]
        return self._stage.joined(answers, reading, kept)

    async def _previous(
        self, page: PageRecord, version_id: int | None, response: FetchResponse
    ) -> tuple[PreviousCopy | None, Tags]:
        """Return the copy held and its tags by plug-in."""
        if version_id is None:
            return None, {}
        copy = await self._detector.held_copy(page, len(response.body))
        if copy is None or len(copy.body) > MAX_READ_BYTES:
            return None, {}
        kept = self._database.look_up(_tags_of, version_id)
        return PreviousCopy(copy.body, copy.content_type), kept

    async def _answer(self, hook: Hook, reading: Reading, kept: Tags) -> object:
        if self._stage.is_quick(hook):
            return self._stage.ask(hook, reading, kept)
        held = reading.previous
        size_bytes = len(reading.body) + (len(held.body) if held is not None else 0)
        began_at = trio.current_time()
        try:
            return await self._analyser.run_guest(
                self._stage.ask,
                hook,
                reading,
                kept,
                url=reading.page.url,
                label=f"plug-in {hook.plugin.name}",
                memory_bytes=MEMORY_FACTOR * size_bytes if size_bytes > FREE_BYTES else 0,
                limit_s=hook.plugin.max_s,
                limiter=self._limiter,
            )
        except trio.TooSlowError:
            hook.abandoned(reading.page.url, trio.current_time() - began_at)
            return FAILED


def _tags_of(connection: apsw.Connection, version_id: int) -> Tags:
    return version_tag.of_version(connection, version_id)


def _text_reader(response: FetchResponse, comparison: BodyComparison | None) -> partial[str]:
    if comparison is not None and comparison.analysis is not None:
        return partial(comparison.analysis.blocks.visible_text)
    if comparison is not None and comparison.pdf is not None:
        return partial(str, comparison.pdf.text)
    return partial(_visible_text, response.body, response.header("content-type"))


def _visible_text(body: bytes, content_type: str | None) -> str:
    return read_blocks(body, content_type).visible_text()
