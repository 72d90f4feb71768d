"""What resting means for each page of a host: the dry run of a decision.

Pages that were compared have a verdict. The others are compared as the replicas job does it, up to
a limit, those first whose stored digests differ: the same text may link to its own host, or have a
date. Beyond the limit the digests decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from crawld.core.replica.agreement import MANY_PATHS, PageVerdict
from crawld.daemon.api.replica_selection import Copy
from crawld.daemon.api.schemas.replicas import ReplicaProspect
from crawld.daemon.daemon import Daemon
from crawld.daemon.jobs.replicas.twin_texts import TwinTexts
from crawld.daemon.pacing import PacedReader
from crawld.store.replica import pages as replica_pages
from crawld.store.replica import preview, twin_facts
from crawld.store.replica.preview import PagePreview, Prospect

EXAMPLES: Final = 3
"""Pages of each kind that a dry run names per host."""

MAX_PAGES: Final = 50_000
"""Pages that a dry run examines; with a rest after each slice, this takes a few seconds."""

MAX_TEXTS: Final = 200
"""Pages whose texts a dry run compares, some milliseconds each."""


class ReplicaProspects:
    """One dry run."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._paced = PacedReader(daemon.database, 1.0)
        self._texts = TwinTexts(daemon.context)
        self._pages_left = MAX_PAGES
        self._texts_left = MAX_TEXTS

    async def of(self, copies: Sequence[Copy]) -> tuple[list[ReplicaProspect], int]:
        """Return what becomes of the pages of hosts, and how many hosts were not examined."""
        found: list[ReplicaProspect] = []
        for copy in copies:
            if self._pages_left <= 0:
                break
            found.append(await self._of_host(copy))
        return found, len(copies) - len(found)

    async def _of_host(self, copy: Copy) -> ReplicaProspect:
        pages: list[PagePreview] = []
        after: int | None = replica_pages.BEFORE_FIRST
        while after is not None:
            part, after = await self._paced.read(
                preview.preview, copy.server_id, copy.canonical_id, after
            )
            pages += part
        self._pages_left -= len(pages)
        texts = {page.page_id: page.digest for page in pages if page.is_open}
        prospects = {page.page_id: page.prospect for page in pages}
        await self._compare(copy, pages, prospects, texts)
        # A login wall or an error page proves nothing.
        counts = Counter(texts.values())
        for page_id, digest in texts.items():
            is_repeated = digest is not None and counts[digest] >= MANY_PATHS
            if is_repeated and prospects[page_id] is Prospect.RESTS:
                prospects[page_id] = Prospect.REPEATED
        return _prospect(copy, pages, prospects)

    async def _compare(
        self,
        copy: Copy,
        pages: Sequence[PagePreview],
        prospects: dict[int, Prospect],
        texts: dict[int, bytes | None],
    ) -> None:
        """Compare the texts of pages that were never compared, and correct what was assumed."""
        open_pages = [page for page in pages if page.is_open]
        open_pages.sort(key=lambda page: page.prospect is not Prospect.DIFFERS)
        wanted = [page.page_id for page in open_pages[: self._texts_left]]
        self._texts_left -= len(wanted)
        origins = await self._daemon.database.read(
            replica_pages.origins_of_pair, (copy.server_id, copy.canonical_id)
        )
        for begin in range(0, len(wanted), twin_facts.AT_ONCE):
            part = wanted[begin : begin + twin_facts.AT_ONCE]
            for facts in await self._paced.read(twin_facts.twin_facts, part, copy.canonical_id):
                compared = await self._texts.compare(facts, origins, copy.canonical_host)
                if compared is None:
                    continue
                agrees = compared.comparison.verdict is PageVerdict.AGREES
                page_id = facts.page.page_id
                prospects[page_id] = Prospect.RESTS if agrees else Prospect.DIFFERS
                texts[page_id] = compared.digest


def _prospect(
    copy: Copy, pages: Sequence[PagePreview], prospects: dict[int, Prospect]
) -> ReplicaProspect:
    """Count the pages of a host by what becomes of them."""
    counts = Counter(prospects.values())
    examples: dict[Prospect, list[str]] = {Prospect.RESTS: [], Prospect.DIFFERS: []}
    for page in pages:
        named = examples.get(prospects[page.page_id])
        if named is not None and len(named) < EXAMPLES:
            named.append(page.url)
    return ReplicaProspect(
        host=copy.host,
        canonical_host=copy.canonical_host,
        status=copy.row.status if copy.row is not None else None,
        resting=sum(page.suspended for page in pages),
        would_rest=counts[Prospect.RESTS],
        differing=counts[Prospect.DIFFERS],
        repeated=counts[Prospect.REPEATED],
        only_here=counts[Prospect.ONLY_HERE],
        unvisited=counts[Prospect.UNVISITED],
        resting_examples=examples[Prospect.RESTS],
        differing_examples=examples[Prospect.DIFFERS],
    )
