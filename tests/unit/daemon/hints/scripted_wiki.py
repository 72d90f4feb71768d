"""A wiki in a database, its hint sources, and an API client with scripted responses."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

from crawld.core.page import Outcome, PageState
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.api_client import Api
from crawld.daemon.hints.wiki_probe import ProbeSource
from crawld.daemon.hints.wiki_source import Wiki
from crawld.daemon.hints.wikis import FanOutSource, RecentChangesSource
from crawld.sources.mediawiki_api import ApiTrouble, read_response
from crawld.sources.mediawiki_site import WikiFacts
from crawld.sources.mediawiki_title import Namespace, TitleRules
from crawld.store import visit
from crawld.store.changes import hint_source, wiki, wiki_page
from crawld.store.changes.wiki_page import ResolvedTitle, VisitedPage
from crawld.store.frontier import frontier, site
from crawld.store.versions import body as body_rows
from crawld.store.versions import response
from crawld.store.visit import VisitRecord
from tests.unit.daemon.site_values import make_discovery

NOW = 1_790_000_000.0
HOUR_S = 3_600.0
SPACES = {0: Namespace(0, ""), 6: Namespace(6, "File"), 10: Namespace(10, "Template")}
FACTS = WikiFacts(
    "MediaWiki 1.39",
    "http://a.test",
    TitleRules(
        article_path="/wiki/$1",
        script="/w/index.php",
        namespaces=SPACES,
        names={"file": 6, "template": 10},
    ),
)


def iso_time(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class ScriptedClient:
    """An API client with scripted responses, parsed as real ones."""

    waiting: list = field(default_factory=list)
    asked: list = field(default_factory=list)

    async def ask(self, api, query, *, due, takes_along=False, due_for_s=0.0):
        assert due
        self.asked.append(query)
        given = self.waiting.pop(0)
        if isinstance(given, ApiTrouble):
            return given
        status, body = given if isinstance(given, tuple) else (200, given)
        text = body if isinstance(body, str) else json.dumps(body)
        return read_response(status, None, text.encode(), now=NOW)


def reply(at=NOW, cursor=None, **query):
    answer = {"curtimestamp": iso_time(at), "query": query}
    return {**answer, "continue": cursor} if cursor else {**answer, "batchcomplete": True}


def edit(number, title, at=NOW - 5, page=0, space=0, revid=None):
    values = {"type": "edit", "rcid": number, "title": title, "ns": space, "pageid": page}
    values |= {} if revid is None else {"revid": revid}
    return {**values, "timestamp": iso_time(at)}


def is_waiting(world, kind, cursor=None):
    return world.sources[kind].is_waiting(world.known.sources[kind]._replace(cursor=cursor))


class World:
    """A database with a wiki of some pages, its sources and a scripted client."""

    def __init__(self, database, known, pages):
        self.database = database
        self.known = known
        self.pages = pages
        self.client = ScriptedClient()
        self.sources = {
            kind: make(known, database, self.client, Clock(wall=lambda: NOW))
            for kind, make in (
                ("recent_changes", RecentChangesSource),
                ("probe", ProbeSource),
                ("fan_out", FanOutSource),
            )
        }

    async def poll(self, kind, *answers, cursor=None):
        """Poll a source once from a cursor."""
        self.client.waiting[:] = answers
        row = self.known.sources[kind]._replace(cursor=cursor)
        return await self.sources[kind].poll(row)

    def hinted_titles(self, poll):
        """Return the titles for which a poll gives hints."""
        titles = {number: title for title, number in self.pages.items()}
        return {titles[page.page_id] for page in poll.pages}


def changed(page_id, content):
    """Return a visit an hour ago that stored a copy."""
    return VisitRecord(
        page_id=page_id,
        visited_at=NOW - HOUR_S,
        outcome=Outcome.CHANGED,
        state=PageState.VISITED,
        response=response.StoredResponse(status=200, http_version="HTTP/1.1", headers=b""),
        body=body_rows.encode(content),
    )


def prepare(connection, count):
    site.upsert(connection, "s", "{}", source="config", at=NOW)
    titles = [f"Page {number}" for number in range(count)]
    new = frontier.discover(
        connection, [make_discovery(f"/wiki/{title.replace(' ', '_')}") for title in titles]
    )
    for page in new:
        record = VisitRecord(
            page_id=page.page_id,
            visited_at=NOW - HOUR_S,
            outcome=Outcome.UNCHANGED,
            state=PageState.VISITED,
        )
        visit.record(connection, record)
    wiki.record_detection(connection, 1, 1, NOW, "http://a.test/w/api.php")
    wiki.set_facts(connection, 1, FACTS.to_json(), NOW)
    seen = [
        (VisitedPage(page.page_id, page.url, NOW - HOUR_S, None), title)
        for page, title in zip(new, titles, strict=True)
    ]
    wiki_page.register(connection, 1, 1, seen, NOW)
    for number, row in enumerate(wiki_page.list_in_state(connection, 1, "unresolved", limit=count)):
        # The last title redirects to the first.
        shown = 100 if number == count - 1 else 100 + number
        wiki_page.resolve(connection, row, ResolvedTitle(shown, row.title, None), NOW)
    [row] = wiki.list_wikis(connection)
    kinds = ("recent_changes", "probe", "fan_out")
    sources = {
        kind: hint_source.ensure_of_wiki(
            connection, row.wiki_id, row.host_id, kind, row.api_url, NOW
        )
        for kind in kinds
    }
    known = Wiki(row, FACTS, Api(row.site_ids, row.api_url), sources)
    return known, {title: page.page_id for page, title in zip(new, titles, strict=True)}
