"""The `estimate` job: priors of hosts and sections."""

from contextlib import closing

import pytest

from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.page import Outcome, PageState
from crawld.daemon.jobs.refit_models import put_priors, refit_slice
from crawld.store import visit
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


def add(connection, path):
    """Add a page and return its number."""
    discovery = Discovery.of(f"https://a.org/{path}", site_id=1, at=NOW, depth=1)
    [new] = frontier.discover(connection, [discovery])
    return new.page_id


def visited_daily(connection, path, *, changes):
    """Add a page with the model of 20 daily visits that all found a change, or all none."""
    model = PageModel()
    for day in range(20):
        model.update(Observation(NOW + day * DAY_S, changes and day > 0, interval_s=DAY_S))
    record = VisitRecord(
        page_id=add(connection, path),
        visited_at=NOW,
        outcome=Outcome.UNCHANGED,
        state=PageState.VISITED,
        model=model.to_bytes(),
    )
    visit.record(connection, record)


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
