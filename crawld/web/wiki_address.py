"""The wiki of a page, and its page by another spelling of a title, as the wiki itself finds it.

A wiki answers `/wiki/c++` and `/wiki/C++` with the page whose URL is `/wiki/C%2B%2B`.
"""

from __future__ import annotations

from functools import lru_cache

import apsw

from crawld.core.url import split_url
from crawld.sources.mediawiki_site import WikiFacts
from crawld.store.changes import wiki

_read_facts = lru_cache(maxsize=16)(WikiFacts.from_json)


def wiki_of(connection: apsw.Connection, url: str) -> WikiFacts | None:
    """Return the description of the wiki that a URL belongs to; None if it is no known wiki."""
    facts = wiki.facts_of(connection, split_url(url).origin)
    return None if facts is None else _read_facts(facts)


def other_spelling(connection: apsw.Connection, url: str) -> str | None:
    """Return the URL that a wiki uses for the title in another URL; None: it uses this one."""
    facts = wiki_of(connection, url)
    if facts is None:
        return None
    title = facts.titles.title_of(url)
    found = facts.titles.url_of(title, split_url(url).origin) if title else None
    return found if found != url else None
