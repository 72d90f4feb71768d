"""`/pages?class_days=` lists the pages of one rate class, and the config names the classes."""

import pytest

from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.daemon.api import page_classes
from crawld.store.changes import model
from tests.daemon.control_client import get
from tests.daemon.harness import make_site, until

DAY_S = 86_400.0


def visited_daily(period):
    """Return the model of a page that changes every so many days; None: unknown."""
    found = PageModel(first_at=1.0, last_visit_at=1.0, last_change_at=1.0)
    for day in range(1, 121 if period else 1):
        changed = day % period == 0
        found.update(Observation(1.0 + day * DAY_S, changed=changed, interval_s=DAY_S))
    return found


@pytest.fixture(params=[()])
async def running(serve, daemon, mirror, request):
    """A daemon with 12 pages: they change every 30, 3, 10 days in turn; the last is unknown."""
    web = await serve(make_site(pages=12))
    found = await daemon(web.url(), schedule={"rate_classes_days": list(request.param)})
    await until(
        lambda: mirror.rows("SELECT count(*) FROM model") == [(12,)], what="models of all pages"
    )
    found.state.set_host_paused(1, "a.test", paused=True)
    await until(lambda: not found.crawl.schedule.on_turn, what="no turn under way")
    await found.crawl.recorder.drain()

    def put(connection):
        for page in range(1, 13):
            period = 0 if page == 12 else (30, 3, 10)[page % 3]
            model.put(connection, page, visited_daily(period).to_bytes())

    await found.database.write(put)
    return found


async def numbers(running, **asked):
    rows = (await get(running, "/pages", **asked)).json()
    return [row["page_id"] for row in rows]


async def test_pages_of_a_class_are_listed_in_parts(running, monkeypatch):
    monkeypatch.setattr(page_classes, "_SLICE", 5)
    assert await numbers(running, class_days=3) == [1, 4, 7, 10]
    assert await numbers(running, class_days=10) == [2, 5, 8, 11]
    assert await numbers(running, class_days=30, after=3, limit=1) == [6]
    assert await numbers(running, class_days=1) == []
    assert await numbers(running, class_days=3, host="a.test", state="gone") == []
    refused = await get(running, "/pages", class_days=5)
    assert refused.status_code >= 400
    assert "0.25, 1, 3" in refused.text


@pytest.mark.parametrize("running", [(9.0, 2.0)], indirect=True)
async def test_the_config_names_the_classes(running):
    assert await numbers(running, class_days=2) == [1, 4, 7, 10]
    assert await numbers(running, class_days=9) == [2, 3, 5, 6, 8, 9, 11]
    url = (await get(running, "/pages", limit=1)).json()[0]["url"]
    seen = (await get(running, "/page", url=url)).json()["model"]
    assert (seen["class_days"], list(seen["class_probabilities"])) == (2.0, ["2.0", "9.0"])
