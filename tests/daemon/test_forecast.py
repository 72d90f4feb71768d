"""The forecast over the control socket, with hints and without."""

from dataclasses import replace

import numpy as np
import pytest

from crawld.daemon.hints.source import Hint, Poll
from crawld.store.changes import change, hint_source
from crawld.store.changes.change import Change
from tests.daemon.control_client import get
from tests.daemon.page_history import DAY_S


@pytest.fixture(autouse=True)
def slow_host(mirror):
    """A host that permits one request in three hours."""
    mirror.tables = {"politeness": {"host_delay_s": 10_800.0}}


@pytest.fixture
async def daemon_with_history(edited_page):
    """A daemon whose page has an exact history: a change every six hours, up to now."""
    running, page_id, _ = edited_page
    now = running.clock.now()
    changed_at = now - np.arange(400, 0, -1) * DAY_S / 4
    changes = [Change(float(at), revision) for revision, at in enumerate(changed_at)]
    await running.database.write(change.insert, page_id, changes)
    return running


async def test_freshness_rises_with_the_budget_and_with_hints(daemon_with_history):
    response = await get(daemon_with_history, "/forecast", what="s", target=0.9)
    assert response.status_code == 200, response.text
    forecast = response.json()
    assert forecast["exact"] == 1
    assert 1 <= forecast["pages"] == forecast["sampled"]
    freshness = [point["freshness"] for point in forecast["curve"]]
    assert freshness == sorted(freshness)
    assert all(p["freshness_hinted"] >= p["freshness"] for p in forecast["curve"])
    assert forecast["now"]["freshness_hinted"] > forecast["now"]["freshness"] + 0.1
    assert (forecast["now"]["delay_s"], forecast["now"]["requests_per_day"]) == (10_800.0, 8.0)
    assert forecast["hints"] == {"learnt": False, "lag_s": 60.0, "missed_share": 0.0, "trust": 1.0}
    now = [point for point in forecast["curve"] if point["budget"] == 1.0]
    assert now == [forecast["now"]]
    assert forecast["target"]["budget_hinted"] <= forecast["target"]["budget"]
    assert forecast["now"]["stale_age_s"] > forecast["now"]["age_s"]


async def test_a_storm_of_reports_counts_more_than_a_calm_history(daemon_with_history):
    running = daemon_with_history
    calm = (await get(running, "/forecast", what="s")).json()
    assert calm["assumptions"]["reported_changes_per_day"] is None
    assert not calm["assumptions"]["hints"]
    row = await running.database.write(
        hint_source.ensure, 1, 1, "recent_changes", "https://a.test/api", running.clock.now()
    )
    now = running.clock.now()
    [(url,)] = await running.database.read(
        lambda connection: connection.execute(
            "SELECT url FROM page WHERE last_visit_at IS NOT NULL LIMIT 1"
        ).fetchall()
    )
    for number in range(60):
        at = now - 60.0 + number
        # As if it had been copied again between the edits.
        await running.database.write(
            lambda connection, at=at: connection.execute(
                "DELETE FROM hint; UPDATE page SET last_visit_at = ? WHERE url = ?", (at, url)
            )
        )
        poll = Poll(at=at, hints=[Hint(url, at + 0.5, at + 0.5)], told_until=at + 1.0)
        await running.background.hint_poller.accept(row, replace(poll, at=at + 1.0))
        row = await running.database.read(hint_source.get, row.hint_source_id)
    stormy = (await get(running, "/forecast", what="s")).json()
    given = stormy["assumptions"]
    assert given["hints"]
    assert given["changes_per_day"] == given["reported_changes_per_day"]
    assert given["changes_per_day"] > 1_000 * given["history_changes_per_day"]
    assert stormy["now"]["freshness"] < 0.5 * calm["now"]["freshness"]


async def test_without_observed_changes_there_is_no_forecast(edited_page):
    running, _, _ = edited_page
    refused = await get(running, "/forecast", what="s")
    assert refused.status_code == 404
    assert "not known yet" in refused.json()["error"]


async def test_a_forecast_of_one_host_and_of_an_unknown_one(daemon_with_history):
    whole = (await get(daemon_with_history, "/forecast")).json()
    host = (await get(daemon_with_history, "/forecast", what="a.test")).json()
    assert host["now"]["freshness"] == pytest.approx(whole["now"]["freshness"], abs=1e-3)
    refused = await get(daemon_with_history, "/forecast", what="elsewhere.test")
    assert refused.status_code == 404
    assert "elsewhere.test" in refused.json()["error"]
    assert (await get(daemon_with_history, "/forecast", target=1.5)).status_code == 422
