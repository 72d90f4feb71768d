"""Find a wiki page by another spelling of its title, as the wiki itself does.

A wiki answers `/wiki/c++` and `/wiki/C++` with the page whose URL is `/wiki/C%2B%2B`.
"""

from __future__ import annotations

from functools import lru_cache

import apsw

from crawld.core.url import split_url
from crawld.sources.mediawiki_site import WikiFacts
from crawld.store.changes import wiki

_read_facts = lru_cache(maxsize=16)(WikiFacts.from_json)


def other_spelling(connection: apsw.Connection, url: str) -> str | None:
    """Return the URL that a wiki uses for the title in another URL; None: it uses this one."""
    origin = split_url(url).origin
    facts = wiki.facts_of(connection, origin)
    if facts is None:
        return None
    titles = _read_facts(facts).titles
    title = titles.title_of(url)
    found = titles.url_of(title, origin) if title else None
    return found if found != url else None
