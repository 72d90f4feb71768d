"""The final summary of `crawld mirror`, counted in the database after the daemon stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from crawld.config.site import SiteConfig
from crawld.core.page import Failure, Outcome, PageState
from crawld.store.engine.database import Database
from crawld.store.frontier import page as page_rows
from crawld.store.frontier import refusal
from crawld.store.frontier import site as site_rows
from crawld.store.frontier.page import PageRecord

BATCH = 5_000
EXAMPLES = 5
"""Failed pages to list as examples."""

EXPECTED_FAILURES = frozenset({Failure.ROBOTS, Failure.WRONG_TYPE, Failure.PLUGIN})
"""Reasons for a missing copy that are not errors."""


@dataclass(slots=True)
class MirrorSummary:
    """Counts of the pages of one site.

    Attributes:
        pages: pages by state, without unvisited pages beyond the current maximum depth.
        failed: pages whose last visit failed, by reason.
        examples: URL and reason of a few failed pages.
        refused: why URLs were refused in this run.
    """

    pages: Counter[PageState] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    examples: list[tuple[str, str]] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    @property
    def unvisited(self) -> int:
        """Pages that were never visited."""
        return self.pages[PageState.DISCOVERED]

    @property
    def complete(self) -> bool:
        """Whether every page that may be visited was visited without failure."""
        return bool(self.pages.total()) and not self.unvisited and not self.failed.total()

    def add(self, pages: Iterable[PageRecord], *, max_depth: int | None) -> None:
        """Count pages."""
        for page in pages:
            beyond = max_depth is not None and page.depth > max_depth and not page.seed
            if beyond and page.state is PageState.DISCOVERED:
                continue
            self.pages[page.state] += 1
            if reason := _failure_reason(page):
                self.failed[reason] += 1
                if len(self.examples) < EXAMPLES:
                    self.examples.append((page.url, reason))


def _failure_reason(page: PageRecord) -> str | None:
    if page.state is PageState.EXCLUDED or page.last_failure in EXPECTED_FAILURES:
        return None
    if page.last_outcome not in (Outcome.FAILED, Outcome.BLOCKED):
        return None
    return page.last_failure or page.last_outcome.value


async def read_summary(path: Path, site: SiteConfig, since: float = 0.0) -> MirrorSummary:
    """Count the pages of a site in a database without a daemon.

    `since` is when the run began, Unix seconds.
    """
    counts = MirrorSummary()
    async with await Database.open(path, read_only=True) as database:
        row = await database.read(site_rows.by_name, site.name)
        counts.refused = await database.read(refusal.reasons_since, since)
        after = 0
        while row is not None:
            pages = await database.read(
                page_rows.list_pages, site_id=row.site_id, after=after, limit=BATCH
            )
            counts.add(pages, max_depth=site.max_depth)
            if len(pages) < BATCH:
                break
            after = pages[-1].page_id
    return counts
