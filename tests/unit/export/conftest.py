"""A mirror in a database, written with the functions of the store, as by the daemon."""

from contextlib import closing
from hashlib import blake2b

import pytest

from crawld.core.page import Outcome, PageState
from crawld.core.url import canonicalize
from crawld.export.source import ExportRequest
from crawld.store import visit
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.versions.body import encode
from crawld.store.versions.headers import pack
from crawld.store.versions.response import StoredResponse
from crawld.store.visit import VisitRecord

NOW = 1_790_000_000.0


class Mirror:
    """A database with pages; `at` advances by a minute with each visit."""

    def __init__(self, path):
        self.path = path
        self.at = NOW - 86_400.0
        migrate.migrate(path)
        self.write(lambda c: site.upsert(c, "site", "{}", source="config", at=1.5))

    def write(self, fn):
        with closing(open_connection(self.path)) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # faster; no test needs durability
            connection.execute("BEGIN IMMEDIATE")
            result = fn(connection)
            connection.execute("COMMIT")
            return result

    def read(self, fn, *args):
        with closing(open_connection(self.path, read_only=True)) as connection:
            return fn(connection, *args)

    def page(self, url, body=None, *, seed=False, **answer):
        """Add a page; with a body it is visited, with the outcome changed."""
        url = canonicalize(url)
        found = Discovery.of(url, site_id=1, at=self.at, seed=seed)
        self.write(lambda c: frontier.discover(c, [found]))
        if body is not None:
            self.visit(url, Outcome.CHANGED, body, **answer)

    def visit(self, url, outcome, body=None, *, status=200, reason="OK", headers=None, **more):
        """Store a visit of a page."""
        self.at += 60.0
        url = canonicalize(url)
        page_id = self.number(url)
        kind = more.pop("content_type", "text/html")
        lines = [(b"Content-Type", kind.encode()), *(headers or [])]
        digest = None if body is None else blake2b(body, digest_size=16).digest()
        changed = outcome is Outcome.CHANGED
        answer = StoredResponse(
            status=status,
            http_version="HTTP/1.1",
            reason=reason,
            headers=pack(lines),
            content_type=kind,
            charset=more.pop("charset", "utf-8"),
        )
        record = VisitRecord(
            page_id=page_id,
            visited_at=self.at,
            outcome=outcome,
            state=more.pop("state", PageState.VISITED),
            response=answer,
            address="192.0.2.1",
            duration_s=0.25,
            body_bytes=len(body or b""),
            digest=digest,
            body=encode(body) if changed else None,
            **more,
        )
        self.write(lambda c: visit.record(c, record))

    def request(self, out, **options):
        """Return the request of an export of all pages so far."""
        return ExportRequest(self.path, out, self.at, **options)

    def number(self, url):
        sql = "SELECT page_id FROM page WHERE url = ?"
        return self.read(lambda c: c.execute(sql, (canonicalize(url),)).get)

    def move(self, url, target):
        """Add a page whose visit found a redirect."""
        self.page(url)
        self.visit(
            url,
            Outcome.MOVED,
            status=301,
            reason="Moved Permanently",
            headers=[(b"Location", target.encode())],
            redirect_url=target,
            detail=target,
        )


@pytest.fixture
def mirror(tmp_path):
    """An empty mirror with one site."""
    return Mirror(tmp_path / "mirror.db")
