"""The audit finds a page that rests though its twin had lost its text before it was visited."""

from contextlib import closing
from dataclasses import replace

import pytest
import trio

from crawld.store import visit
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, site
from crawld.store.versions.version import read_body
from crawld.universe.draw import campaign_days, draw_plan
from crawld.universe.event_log import EventLog
from crawld.universe.findings import Findings
from crawld.universe.lone_plans import REPLICA, lone_kind
from crawld.universe.plan import START_AT, ClockStep, UniversePlan
from crawld.universe.replica_audit import COMPARED_S, check_replicas
from tests.unit.store.rows import changed
from tests.universe.plans import plain_host

HOSTS = tuple(replace(plain_host(9), name=name) for name in ("site0.test", "mirror.site0.test"))
PLAN = UniversePlan(1, 0.4, 60.0, HOSTS, (), prune=True)
END_S = 30_000.0
LOST_S = 10_000.0
"""The twin is seen with its next text."""

UNDONE = 9
"""A revision with the text of the first."""


@pytest.fixture
def broken(tmp_path):
    """Return a function that writes visits of a page at rest and its twin, and audits them."""

    def audit(own, twin=((100.0, 0), (LOST_S, 1)), *, plan=PLAN, state="suspended"):
        path = tmp_path / "mirror.db"
        migrate.migrate(path)
        findings = Findings(EventLog())
        with closing(open_connection(path, read_only=False)) as connection:
            site.upsert(connection, "docs", "{}", source="config", at=START_AT)
            urls = [f"http://{host.name}/a" for host in HOSTS]
            pages = [frontier.Discovery.of(url, site_id=1, at=START_AT) for url in urls]
            for page, visits in zip(frontier.discover(connection, pages), (twin, own), strict=True):
                for at_s, revision in visits:
                    at, text = START_AT + at_s, b"%d" % revision
                    connection.execute("BEGIN")
                    visit.record(connection, changed(page.page_id, text, at))
                    connection.execute("COMMIT")
            connection.execute("UPDATE page SET state = ? WHERE page_id = 2", (state,))

            async def check():
                check_replicas(plan, findings, connection, revisions_of, END_S)

            trio.run(check)
        return [each.invariant for each in findings.violations]

    return audit


def revisions_of(connection, url, version_id):
    del url
    number = int(read_body(connection, version_id))
    return {number, UNDONE} if number in (0, UNDONE) else {number}


@pytest.mark.parametrize(
    ("own", "invariants"),
    [
        ([(200.0, 0)], []),  # the twin has changed since
        ([(200.0, 0), (LOST_S + 30.0, 0)], []),  # a page may change between both visits
        ([(LOST_S + 90.0, 0)], ["replica_rests"]),
        ([(LOST_S + 90.0, 1)], []),
        ([(LOST_S + 90.0, 2)], ["replica_rests"]),  # the twin never had that text
        ([(END_S - COMPARED_S + 1.0, 0)], []),  # it is not compared yet
    ],
)
def test_a_page_rests_while_its_twin_has_its_text(broken, own, invariants):
    assert broken(own) == invariants


@pytest.mark.parametrize(
    "excuse",
    [
        {"steps": (ClockStep(100.0, 2.0),)},
        {"keep_versions": 1},
        {"hosts": (HOSTS[0], replace(HOSTS[1], site_seed=6))},
        {"hosts": (HOSTS[0], replace(HOSTS[1], noise=True))},
    ],
)
def test_where_copies_do_not_tell_the_text_nothing_is_checked(broken, excuse):
    assert broken([(LOST_S + 90.0, 0)], plan=replace(PLAN, **excuse)) == []


def test_a_text_that_the_twin_has_again_agrees(broken):
    own = [(LOST_S + 900.0, 0)]
    assert broken(own, [(100.0, 0), (LOST_S, 1), (LOST_S + 600.0, UNDONE)]) == []


@pytest.mark.parametrize(("text", "invariants"), [(1, []), (0, ["replica_rests"])])
def test_a_text_that_the_twin_has_under_a_number_of_its_own_agrees(
    broken, monkeypatch, text, invariants
):
    def apart(connection, url, version_id):
        return {(url, read_body(connection, version_id))}

    monkeypatch.setitem(globals(), "revisions_of", apart)
    assert broken([(LOST_S + 90.0, text)]) == invariants


def test_a_page_that_is_visited_may_differ(broken):
    assert broken([(LOST_S + 90.0, 0)], state="visited") == []


def test_some_seeds_have_a_replica_alone():
    seeds = [seed for seed in range(1, 301) if lone_kind(seed) is REPLICA]
    alone = [draw_plan(seed, campaign_days(seed)) for seed in seeds]
    assert 4 <= len(alone) <= 24
    for plan in alone:
        assert plan.hosts[0].site_seed == plan.hosts[1].site_seed
        assert plan.hosts[0].change_seed != plan.hosts[1].change_seed
