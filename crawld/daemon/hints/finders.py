"""The finders of hint sources, as plug-ins of crawld itself: MediaWikis, and listed documents.

They take parts of the daemon that have no stable type, so that the hook is for parts of crawld.
They are registered at every start, but imported when the first poller is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from crawld.plugin_host.loading import PluginHost
from crawld.plugins import API, hookimpl

if TYPE_CHECKING:
    from crawld.daemon.crawl.api_client import ApiClient
    from crawld.daemon.crawl.context import CrawlContext
    from crawld.daemon.fetch.robots_cache import RobotsCache
    from crawld.daemon.hints.documents import DocumentFetcher
    from crawld.daemon.hints.source import AcceptPoll, Finder


@dataclass(frozen=True, slots=True)
class HintParts:
    """The parts of the daemon that finders use.

    Attributes:
        wiki_changed: called when a wiki reported changes; its argument: whether some are missing.
        accept: stores results for a source other than the one polled.
    """

    context: CrawlContext
    client: ApiClient
    wiki_changed: Callable[[bool], None]
    accept: AcceptPoll
    robots: RobotsCache
    documents: DocumentFetcher


@hookimpl
def _wiki_finders(parts: HintParts) -> Sequence[Finder]:
    """Return the finder of MediaWikis."""
    from crawld.daemon.hints.wikis import WikiFinder

    return [WikiFinder(parts.context, parts.client, parts.wiki_changed, parts.accept)]


@hookimpl
def _document_finders(parts: HintParts) -> Sequence[Finder]:
    """Return the finder of sitemaps, feeds, listings and event streams."""
    from crawld.daemon.hints.finder import DocumentFinder

    return [DocumentFinder(parts.context, parts.robots, parts.documents, parts.accept)]


MEDIAWIKI: Final = SimpleNamespace(CRAWLD_API=API, hint_finders=_wiki_finders)
DOCUMENTS: Final = SimpleNamespace(CRAWLD_API=API, hint_finders=_document_finders)


def finders_of(host: PluginHost, parts: HintParts) -> list[Finder]:
    """Return the finders of all plug-ins."""
    made: list[Finder] = []
    for _, function in host.implementations("hint_finders"):
        found = function(parts)
        assert isinstance(found, Sequence)
        made += found
    return made
