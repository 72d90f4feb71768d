"""The page of search results: hits with counts, by site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import apsw

from crawld.store.mirror.titles import TitleCleaner
from crawld.store.versions import search_index
from crawld.web.pages import render_page
from crawld.web.reply import Reply, number

HITS_PER_PAGE: Final = 10
MAX_HITS: Final = 1_000
SITES_SHOWN: Final = 30
"""Sites with hits that are offered as filters."""


def search_page(connection: apsw.Connection, parameters: Mapping[str, str], now: float) -> Reply:
    """Return the pages that match a query, perhaps only those of one site."""
    query = parameters.get("q", "").strip()
    site = parameters.get("site", "").strip()
    start = min(number(parameters.get("start")), MAX_HITS)
    hits = search_index.find(connection, query, site=site, start=start, limit=HITS_PER_PAGE + 1)
    counts = search_index.count_hits(connection, query)
    cleaner = TitleCleaner(connection)

    def link(site: str = site, start: int = 0) -> str:
        values: dict[str, str | int] = {"q": query}
        values |= {"site": site} if site else {}
        values |= {"start": start} if start else {}
        return f"/search?{urlencode(values, errors='replace')}"

    return render_page(
        "search.html",
        query=query,
        site=site,
        hits=[
            hit._replace(title=cleaner.clean(hit.host_id, hit.title) if hit.title else None)
            for hit in hits[:HITS_PER_PAGE]
        ],
        start=start,
        counts=counts,
        total=counts.of(site),
        sites=counts.sites[:SITES_SHOWN],
        link=link,
        previous=max(start - HITS_PER_PAGE, 0),
        more=len(hits) > HITS_PER_PAGE and start < MAX_HITS,
        waiting=search_index.count_pending(connection),
        now=now,
    )
