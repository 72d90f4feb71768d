"""A copy that begins to differ: how soon its section is crawled again."""

import pytest

from crawld.store.engine.database import Database
from tests.unit.daemon.jobs.replicas.diverging_copies import DAY_S, HOUR_S, Copies


@pytest.fixture
async def open_copies(tmp_path):
    async with await Database.open(tmp_path / "w.db") as database:
        yield lambda seed: Copies(database, seed)


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_section_of_which_a_tenth_differs_is_crawled_again(open_copies, seed):
    """Two days until a sample shows it, and few runs from then on: one compares all that rest."""
    copies = open_copies(seed)
    await copies.fill(100)
    await copies.pass_hour()
    assert copies.all_rest
    copies.differing = frozenset(range(seed, 100, 10))
    differing = {copies.page_ids[number] for number in copies.differing}
    began, seen = copies.now, None
    while not copies.none_rests and copies.now < began + 3 * DAY_S:
        resumed = await copies.pass_hour()
        if seen is None and resumed & differing:
            seen = copies.now
    assert seen is not None
    assert copies.now - seen <= 6 * HOUR_S
    assert copies.now - began <= 2 * DAY_S


async def test_a_visit_of_a_twin_during_the_comparison_is_later_than_it(open_copies):
    """Pages are compared by what was read of them: their twins may be visited meanwhile."""
    copies = open_copies(1)
    await copies.fill(20)
    copies.tick_s = 1.0
    await copies.pass_hour()
    times = await copies.database.read(
        lambda connection: connection.execute(
            "SELECT DISTINCT compared_at FROM page_twin"
        ).fetchall()
    )
    assert len(times) == 1
