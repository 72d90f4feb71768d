"""`crawld purge`, and the tables of purges and quotas."""

import json
from contextlib import closing

import pytest

from crawld.cli.retention import purge_table, retention_table
from crawld.core.page import Outcome, PageState
from crawld.daemon.api.schemas.retention import PurgeReport, QuotaStatus
from crawld.store import visit
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.versions import body, headers
from crawld.store.versions.response import StoredResponse
from crawld.store.visit import VisitRecord
from tests.unit.cli.conftest import shown

URL = "http://a.test/secret"


@pytest.fixture
def db(db):
    """A database with one page and one version."""
    with closing(open_connection(db)) as connection:
        site.upsert(connection, "s", "{}", source="config", at=0.0)
        [page] = frontier.discover(connection, [Discovery.of(URL, site_id=1, at=0.0)])
        encoded = body.encode(b"<p>the secret")
        record = VisitRecord(
            page_id=page.page_id,
            visited_at=1.0,
            outcome=Outcome.CHANGED,
            state=PageState.VISITED,
            response=StoredResponse(status=200, http_version="HTTP/1.1", headers=headers.pack(())),
            digest=encoded.digest,
            body=encoded,
        )
        visit.record(connection, record)
    return db


def test_a_database_without_a_daemon_is_purged(command, db):
    ended = command("crawld", "purge", URL, "--db", db, "--yes", "--json")
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    assert (report["pages"][0]["versions"], report["erased"]) == (1, True)
    assert not any(b"the secret" in each.read_bytes() for each in db.parent.glob("m.db*"))


def test_a_purge_without_confirmation_is_refused(command, db):
    ended = command("crawld", "purge", URL, "--db", db)
    assert ended.code == 2
    assert "--yes" in ended.err
    assert b"the secret" in db.read_bytes()


def test_a_purge_names_what_it_could_not_erase():
    page = {"url": URL, "known": True, "versions": 2, "bodies": 1, "same_at": ["http://b.test/x"]}
    unknown = {"url": "http://a.test/n", "known": False, "versions": 0, "bodies": 0, "same_at": []}
    report = {"pages": [page, unknown], "erased": False, "copies": ["m.db.schema-0001.x"]}
    text = purge_table(PurgeReport.model_validate(report))
    parts = ("2 versions deleted", "http://b.test/x", "unknown page", "log", "m.db.schema-0001.x")
    for part in parts:
        assert part in text


def test_quotas_are_shown_with_the_deletable_copies():
    held = [
        {"kind": kind, "copies": n, "stored_bytes": 2_000 * n, "goes": n > 1}
        for n, kind in enumerate(("superseded", "needless", "gone"), 1)
    ]
    quota = {"site": "docs", "used_bytes": 5_000_000, "max_bytes": 1_000_000, "holdings": held}
    text = shown(retention_table([QuotaStatus.model_validate(quota)]))
    for part in ("docs", "superseded versions", "no page uses", "are gone", "deleted as needed"):
        assert part in text
