"""The audit finds changes that never happened, at a wrong time, or that count twice."""

from contextlib import closing

import apsw
import pytest

from crawld.core.change.model import PageModel
from crawld.simweb.site import ValidatorBehavior
from crawld.universe.file_audit import FileAudit
from crawld.universe.plan import UniversePlan
from crawld.universe.run_universe import run_universe
from tests.universe.plans import plain_host


@pytest.fixture
def broken(tmp_path):
    """Return a function that mirrors six pages for half an hour and tells what is wrong."""

    def run(changes_per_day=300.0, **more):
        host = plain_host(6, change_seed=3, changes_per_day=changes_per_day, **more)
        plan = UniversePlan(1, 0.02, 15.0, (host,), (), min_revisit_s=0.0)
        result = run_universe(plan, tmp_path)
        return {each.invariant for each in result.auditor.found.violations}

    return run


def test_what_the_daemon_learns_of_changes_is_true(broken):
    assert broken() == set()


def test_finds_a_visit_that_a_model_counts_twice(broken, monkeypatch):
    right = PageModel.update

    def twice(model, observation):
        right(model, observation)
        right(model, observation)

    monkeypatch.setattr(PageModel, "update", twice)
    assert "visits_counted_twice" in broken()


def test_finds_a_change_at_a_wrong_time(broken, monkeypatch):
    right = PageModel._learn_exact
    monkeypatch.setattr(
        PageModel, "_learn_exact", lambda model, at, now: right(model, at - 5.0, now)
    )
    assert "change_time" in broken()


# A server that says "not modified" of all pages hides since when they differ.
@pytest.mark.parametrize("etag", [ValidatorBehavior.RIGHT, ValidatorBehavior.FROZEN])
def test_finds_a_change_that_never_happened(broken, monkeypatch, etag):
    right = FileAudit.check

    def tampered(audit, path):
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute("UPDATE visit SET outcome = 'changed' WHERE outcome <> 'changed'")
        right(audit, path)

    monkeypatch.setattr(FileAudit, "check", tampered)
    is_found = "change_invented" in broken(changes_per_day=0.1, etag=etag)
    assert is_found == (etag is ValidatorBehavior.RIGHT)
