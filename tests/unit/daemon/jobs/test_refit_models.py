"""The `estimate` job: priors of hosts and sections."""

import struct
import tracemalloc
from contextlib import closing

import pytest

from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.change.record import is_current
from crawld.core.page import Outcome, PageState
from crawld.daemon.jobs import refit_models
from crawld.daemon.jobs.refit_models import put_priors, refit_slice
from crawld.store import visit
from crawld.store.changes import model
from crawld.store.changes.model import BEFORE_FIRST
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, page, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.visit import VisitRecord

NOW, DAY_S = 1_780_000_000.0, 86_400.0


@pytest.fixture
def connection(tmp_path):
    migrate.migrate(tmp_path / "m.db")
    with closing(open_connection(tmp_path / "m.db")) as opened:
        site.upsert(opened, "s", "{}", source="command_line", at=NOW)
        yield opened


def add(connection, path, host="a.org"):
    """Add a page and return its number."""
    discovery = Discovery.of(f"https://{host}/{path}", site_id=1, at=NOW, depth=1)
    [new] = frontier.discover(connection, [discovery])
    return new.page_id


def visited_daily(connection, path, *, changes, host="a.org"):
    """Add a page with the model of 20 daily visits that all found a change, or all none.

    Returns:
        Its number.
    """
    model = PageModel()
    for day in range(20):
        model.update(Observation(NOW + day * DAY_S, changes and day > 0, interval_s=DAY_S))
    record = VisitRecord(
        page_id=add(connection, path, host),
        visited_at=NOW,
        outcome=Outcome.UNCHANGED,
        state=PageState.VISITED,
        model=model.to_bytes(),
    )
    visit.record(connection, record)
    return record.page_id


def test_new_pages_start_from_the_prior_of_their_section(connection):
    for number in range(60):
        visited_daily(connection, f"news/{number}", changes=True)
        visited_daily(connection, f"archive/{number}", changes=False)
    visited_daily(connection, "lone/1", changes=False)
    found = refit_slice(connection, BEFORE_FIRST)
    put_priors(connection, found)
    mean_days = {}
    for section in ("news", "archive", "lone", "other"):
        new = page.for_visit(connection, add(connection, f"{section}/new"))
        mean_days[section] = new.prior_exposure_s / new.prior_shape / DAY_S
    # A new page starts from its section, or from the host if the section is small.
    assert mean_days["news"] < 1.5 < 5 < mean_days["archive"]
    assert mean_days["lone"] == mean_days["other"]
    assert mean_days["news"] < mean_days["other"] < mean_days["archive"]


def test_a_host_cut_by_the_slice_is_fitted_whole_with_the_next_one(connection, monkeypatch):
    monkeypatch.setattr(refit_models, "SLICE", 8)
    monkeypatch.setattr(refit_models, "MODELS_AT_ONCE", 4)
    for number in range(5):
        visited_daily(connection, f"{number}", changes=True)
        visited_daily(connection, f"{number}", changes=True, host="b.org")
    first = refit_slice(connection, BEFORE_FIRST)
    second = refit_slice(connection, first.up_to)
    assert [first.pages, second.pages, second.up_to] == [5, 5, None]
    assert [len(found.priors) for found in (first, second)] == [1, 1]


def test_a_model_of_the_former_version_is_written_back_over_its_stored_form(connection):
    page_ids = [visited_daily(connection, f"{number}", changes=True) for number in range(3)]
    stored = model.of_page(connection, page_ids[1])
    former = bytes([1]) + stored[1:6] + struct.pack("<10H", *range(10)) + stored[46:] + bytes(32)
    model.put(connection, page_ids[1], former)
    moved = refit_slice(connection, BEFORE_FIRST).moved
    parts = [each for part in moved.parts() for each in part]
    assert {each.page_id: each.before for each in parts}[page_ids[1]] == former
    assert model.put_refitted(connection, parts) == len(parts)
    assert is_current(model.of_page(connection, page_ids[1]))


def test_the_models_of_a_slice_are_kept_as_arrays(connection):
    for number in range(300):
        visited_daily(connection, f"{number}", changes=number % 2 == 0)
    refit_slice(connection, BEFORE_FIRST)
    tracemalloc.start()
    try:
        found = refit_slice(connection, BEFORE_FIRST)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(map(len, found.moved.parts())) == found.pages == 300
    assert kept_bytes < 400 * found.pages
