"""A mirror in a database, written as by the daemon, and the application on it."""

import json
from contextlib import closing

import pytest

from crawld.core.page import Outcome, PageState
from crawld.core.url import url_hash
from crawld.store import visit
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, removal, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.removal import RemovalReport
from crawld.store.versions import body, headers
from crawld.store.versions.response import StoredResponse
from crawld.store.visit import VisitRecord
from crawld.web.allowed_hosts import AllowedHosts
from crawld.web.app import MirrorApp
from crawld.web.mirror import DisplayOptions, find_page
from crawld.web.reply import Request

NOW = 1_780_000_000.0
DAY_S = 86_400.0
URL = "https://example.org/a"
PATH = "/https/example.org/a"


def sent(reply):
    return reply.body.decode()


def make_app(display=None, *, now=NOW, hosts=(), database=None, on_error=lambda *_: None):
    """Return an application; without a database its routes are called with a connection."""
    options = display or DisplayOptions()
    return MirrorApp(database, database, lambda: now, options, on_error, AllowedHosts(hosts))


class Mirror:
    """A database under construction; `page` visits a URL, `get` requests a target."""

    def __init__(self, connection):
        self.connection = connection

    def page(self, url, content=None, *, at=NOW, kind="text/html", title="A title", **more):
        discovery = Discovery.of(url, site_id=1, at=NOW)
        [found] = frontier.discover(self.connection, [discovery]) or [self.known(url)]
        if content is not None:
            self.changed(found.page_id, content, at=at, kind=kind, title=title, **more)
        return found.page_id

    def remove(self, url, kind, at, *, target_url=None):
        report = RemovalReport(url_hash(url), kind, at, at + 2, target_url)
        removal.report(self.connection, 1, [report])

    def configure(self, **keys):
        site.upsert(self.connection, "docs", json.dumps(keys), source="config", at=NOW)

    def known(self, url):
        return find_page(self.connection, url)

    def changed(self, page_id, content, *, at, kind, title, charset="utf-8", lines=()):
        encoded = body.encode(content if isinstance(content, bytes) else content.encode())
        response = StoredResponse(
            status=200,
            http_version="HTTP/1.1",
            headers=headers.pack(lines),
            content_type=kind,
            charset=charset if kind == "text/html" else None,
        )
        stored = {"response": response, "digest": encoded.digest, "body": encoded, "title": title}
        self.visited(page_id, Outcome.CHANGED, at=at, **stored)

    def visited(self, page_id, outcome, *, at=NOW, state=PageState.VISITED, **more):
        record = VisitRecord(page_id=page_id, visited_at=at, outcome=outcome, state=state, **more)
        visit.record(self.connection, record)

    def get(self, target, *, display=None, now=NOW + 1, method="GET", **lines):
        app = make_app(display, now=now)
        headers = {name.replace("_", "-"): value for name, value in lines.items()}
        request = Request(method, target, {"base": "http://m.test", **headers})
        return app._route(self.connection, request)


def header(reply, name):
    found = [value.decode("latin-1") for key, value in reply.headers if key == name.encode()]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.fixture
def mirror(tmp_path):
    path = tmp_path / "crawld.db"
    migrate.migrate(path)
    with closing(open_connection(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # faster; no test needs durability
        site.upsert(connection, "docs", "{}", source="config", at=NOW)
        yield Mirror(connection)


@pytest.fixture
def header_of():
    return header
