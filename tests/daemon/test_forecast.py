"""The forecast over the control socket: from the file's histories, with hints and without."""

import numpy as np
import pytest

from crawld.store.changes import change
from crawld.store.changes.change import Change
from tests.daemon.control_client import get
from tests.daemon.page_history import DAY_S


@pytest.fixture(autouse=True)
def slow(mirror):
    """A host that permits a request in three hours."""
    mirror.tables = {"politeness": {"host_delay_s": 10_800.0}}


@pytest.fixture
async def lively(edited_page):
    """The page of `edited_page` with an exact history: a change every six hours, to now."""
    running, page_id, _ = edited_page
    now = running.clock.now()
    instants = now - np.arange(400, 0, -1) * DAY_S / 4
    changes = [Change(float(at), revision) for revision, at in enumerate(instants)]
    await running.database.write(change.insert, page_id, changes)
    return running


async def test_the_curve_rises_and_hints_help(lively):
    answer = await get(lively, "/forecast", what="s", target=0.9)
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert said["exact"] == 1
    assert 1 <= said["pages"] == said["sampled"]
    fresh = [point["freshness"] for point in said["curve"]]
    assert fresh == sorted(fresh)
    assert all(p["freshness_hinted"] >= p["freshness"] for p in said["curve"])
    assert said["now"]["freshness_hinted"] > said["now"]["freshness"] + 0.1
    assert (said["now"]["delay_s"], said["now"]["requests_per_day"]) == (10_800.0, 8.0)
    assert said["hints"] == {"learnt": False, "lag_s": 60.0, "missed_share": 0.0, "trust": 1.0}
    now = [point for point in said["curve"] if point["budget"] == 1.0]
    assert now == [said["now"]]
    assert said["target"]["budget_hinted"] <= said["target"]["budget"]


async def test_before_a_page_was_seen_for_some_time_nothing_is_said(edited_page):
    running, _, _ = edited_page
    refused = await get(running, "/forecast", what="s")
    assert refused.status_code == 404
    assert "not known yet" in refused.json()["error"]


async def test_a_host_can_be_named_and_a_stranger_is_refused(lively):
    whole = (await get(lively, "/forecast")).json()
    host = (await get(lively, "/forecast", what="a.test")).json()
    assert host["now"]["freshness"] == pytest.approx(whole["now"]["freshness"], abs=1e-3)
    refused = await get(lively, "/forecast", what="elsewhere.test")
    assert refused.status_code == 404
    assert "elsewhere.test" in refused.json()["error"]
    assert (await get(lively, "/forecast", target=1.5)).status_code == 422
