"""The audit of the file finds what was taken from it, put into it or changed in it."""

from contextlib import closing

import apsw
import pytest
import trio

from crawld.store.engine import migrate
from crawld.universe.auditor import Auditor
from crawld.universe.event_log import EventLog
from crawld.universe.file_audit import FileAudit
from crawld.universe.findings import Findings
from crawld.universe.lives import Lives
from crawld.universe.plan import (
    ClockStep,
    ControlRequest,
    EndKind,
    FaultKind,
    FaultPeriod,
    LifeEnd,
    UniversePlan,
)
from crawld.universe.run_universe import run_universe
from crawld.universe.simulated_host import SentAnswer
from tests.universe.plans import plain_host

HOST = plain_host(2, changes_per_day=50_000.0)
PAGE = "(SELECT page_id FROM version GROUP BY page_id ORDER BY count(*) DESC LIMIT 1)"
NEWEST = f"SELECT version_id FROM version WHERE page_id = {PAGE} ORDER BY version_id DESC"


@pytest.fixture
def broken_after(tmp_path, monkeypatch):
    """Return a function that runs a universe, changes the file before a check, and tells."""

    def run(*statements, check=1, ends=(), steps=()):
        right, checks = FileAudit.check, iter(range(1, 9))

        def tampered(audit, path):
            if next(checks) == check:
                with closing(apsw.Connection(str(path))) as connection:
                    for statement in statements:
                        connection.execute(statement).fetchall()
            right(audit, path)

        monkeypatch.setattr(FileAudit, "check", tampered)
        plan = UniversePlan(
            1, 300.0 / 86_400.0, 5.0, (HOST,), tuple(ends), min_revisit_s=0.0, steps=steps
        )
        result = run_universe(plan, tmp_path)
        return {each.invariant for each in result.auditor.found.violations}

    return run


def test_a_file_as_the_daemon_leaves_it_has_no_violation(broken_after):
    assert (
        broken_after("PRAGMA user_version", ends=[LifeEnd(EndKind.POWER_CUT, 200.0, 0.0)]) == set()
    )


def test_visits_between_two_steps_of_the_clock_are_found_by_its_time_then(broken_after):
    steps = (ClockStep(100.0, -3_600.0), ClockStep(180.0, 86_400.0))
    assert broken_after("PRAGMA user_version", steps=steps) == set()


def test_visits_after_a_step_back_to_just_before_the_first_are_found(broken_after):
    assert broken_after("PRAGMA user_version", steps=(ClockStep(100.0, -310.0),)) == set()


@pytest.mark.parametrize(
    ("statements", "invariant"),
    [
        (
            [
                "UPDATE page SET visit_count = visit_count - 1 WHERE page_id ="
                " (SELECT page_id FROM visit ORDER BY visit_id DESC LIMIT 1 OFFSET 3)",
                "DELETE FROM visit WHERE visit_id ="
                " (SELECT visit_id FROM visit ORDER BY visit_id DESC LIMIT 1 OFFSET 3)",
            ],
            "visit_lost",
        ),
        (
            ["UPDATE page SET visit_count = visit_count + 1 WHERE visit_count > 0"],
            "visits_miscounted",
        ),
        (
            [
                "CREATE TEMP TABLE twice AS SELECT * FROM visit",
                "UPDATE twice SET visit_id = visit_id + 1000, visited_at = visited_at + 1",
                "INSERT INTO visit SELECT * FROM twice",
            ],
            "visit_invented",
        ),
        (
            [
                "UPDATE version SET body_id ="
                f" (SELECT body_id FROM version WHERE page_id <> {PAGE} LIMIT 1)"
                f" WHERE version_id IN ({NEWEST} LIMIT 1)"
            ],
            "copy_invented",
        ),
        ([f"DELETE FROM version WHERE page_id = {PAGE}"], "copy_lost"),
        ([f"DELETE FROM version WHERE version_id IN ({NEWEST} LIMIT 5)"], "copy_old"),
        (["UPDATE page SET state = 'discovered' WHERE last_visit_at IS NOT NULL"], "file"),
        (
            [
                "INSERT INTO body (body_id, digest, encoding, size_bytes, data)"
                " SELECT max(body_id) + 1, x'00', encoding, size_bytes, data FROM body"
            ],
            "bodies_left",
        ),
    ],
)
def test_a_change_of_the_file_is_found(broken_after, statements, invariant):
    assert invariant in broken_after("PRAGMA foreign_keys = OFF", *statements)


def test_a_copy_that_is_replaced_by_an_older_one_is_found(broken_after):
    ends = [LifeEnd(EndKind.STOP, 280.0, 0.0)]
    older = f"DELETE FROM version WHERE version_id IN ({NEWEST} LIMIT 9)"
    found = broken_after("PRAGMA foreign_keys = OFF", older, check=2, ends=ends)
    assert "copy_replaced" in found


ASKED, ANSWERED, ASIDE, OTHER = "asked", "answered", "set aside", "another page is set aside"


@pytest.mark.parametrize(
    ("events", "lost"),
    [
        ([ASKED, ANSWERED], 1),
        ([ASKED, ANSWERED, ASIDE], 0),
        # A server may notice after its client that all was sent.
        ([ASKED, ASIDE, ANSWERED], 0),
        ([ASKED, ANSWERED, ASKED, ANSWERED, ASIDE], 1),
        ([ASKED, ANSWERED, ASIDE, ASKED, ANSWERED], 1),
        ([ASKED, ANSWERED, OTHER], 1),
    ],
)
def test_only_the_last_answer_of_a_page_that_waits_for_a_probe_is_excused(tmp_path, events, lost):
    path = tmp_path / "mirror.db"
    migrate.migrate(path)
    audit = FileAudit(UniversePlan(1, 1.0, 5.0, (HOST,), ()), Findings(EventLog()))
    does = {
        ASKED: lambda: audit.asked("a.test", "/x"),
        ANSWERED: lambda: audit.answered(HOST, "/x", 1.0, SentAnswer(200, HOST.robots[0])),
        ASIDE: lambda: audit.set_aside("http://a.test/x"),
        OTHER: lambda: audit.set_aside("http://a.test/y"),
    }

    async def happen():
        for event in events:
            does[event]()
        audit.check(path)
        found = [each.invariant for each in audit._found.violations]
        assert found == ["visit_lost"] * lost

    trio.run(happen)


def test_the_daemon_tells_which_page_waits_for_a_probe(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(Auditor, "set_aside", lambda _, url: told.append(url))
    plan = UniversePlan(1, 1.0, 5.0, (HOST,), ())
    lives = Lives(plan, tmp_path, EventLog(), lambda line: None)

    async def log():
        for is_alive, event in ((True, "probe_wanted"), (True, "probed"), (False, "probe_wanted")):
            lives._is_alive = is_alive
            lives.daemon_logged("debug", event, {"url": f"http://a.test/{len(told)}"})

    trio.run(log)
    assert told == ["http://a.test/0"]


def test_the_error_text_of_a_page_that_never_was_may_be_stored(tmp_path):
    """A host that says so with status 200 now and then: nobody can know better."""
    host = plain_host(2, (FaultPeriod(FaultKind.SOFT_404, 0.0, 900.0, 1.0, 20),))
    add = ControlRequest(60.0, "POST", "/add", '{"urls": ["http://a.test/new"]}')
    plan = UniversePlan(1, 900.0 / 86_400.0, 5.0, (host,), (), requests=(add,))
    with (tmp_path / "events").open("w") as events:
        result = run_universe(plan, tmp_path, event_file=events)
    assert " answer a.test /new 200" in (tmp_path / "events").read_text()
    assert result.auditor.found.violations == []
