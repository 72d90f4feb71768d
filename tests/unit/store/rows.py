"""Discoveries, responses and visits that the store tests write."""

from contextlib import closing, contextmanager

from crawld.core.page import Outcome, PageState
from crawld.core.url import url_hash as url_hash
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.engine.in_parts import finish
from crawld.store.frontier import frontier, site
from crawld.store.frontier.caps import NO_CAPS
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.host import HostUpdate
from crawld.store.versions import body, headers
from crawld.store.versions.response import StoredResponse
from crawld.store.visit import VisitRecord

NOW = 1_780_000_000.0


@contextmanager
def opened_file(path):
    """Return a new file with one site, open for writing, each statement its own transaction."""
    migrate.migrate(path)
    with closing(open_connection(path)) as opened:
        opened.execute("PRAGMA synchronous = OFF")  # no test cuts the power
        site.upsert(opened, "docs", "{}", source="config", at=NOW)
        yield opened


def found(path, *, site_id=1, host="example.org", **more):
    url = f"https://{host}/{path}"
    values = {"url_hash": url_hash(url), "at": NOW, "depth": 1} | more
    origin = f"https://{host}"
    return Discovery(url=url, site_id=site_id, host=host, origin=origin, **values)


def discover_in_full(connection, found, caps=NO_CAPS):
    """Add pages or requisites; return the new ones and the page_ids of all."""
    return finish(frontier.discover_in_parts(connection, found, caps))


def answer(status=200, lines=((b"Server", b"nginx"), (b"ETag", b'"a"'))):
    packed = headers.pack(lines)
    return StoredResponse(
        status=status, http_version="HTTP/1.1", headers=packed, content_type="text/html"
    )


def changed(page_id, content, at=NOW, **more):
    encoded = body.encode(content)
    values = {
        "outcome": Outcome.CHANGED,
        "state": PageState.VISITED,
        "response": answer(),
        "digest": encoded.digest,
        "body": encoded,
        "etag": '"a"',
        "last_modified": "Fri, 09 Jan 2026 10:28:16 GMT",
        "title": "A title",
        "wire_bytes": 100,
        "host": HostUpdate(last_fetch_at=at, address="192.0.2.1"),
    }
    return VisitRecord(page_id=page_id, visited_at=at, **(values | more))


def unlike(page_id, outcome, at=NOW, **more):
    """Return a visit without a new copy."""
    values = {"outcome": outcome, "state": PageState.VISITED} | more
    return VisitRecord(page_id=page_id, visited_at=at, **values)
