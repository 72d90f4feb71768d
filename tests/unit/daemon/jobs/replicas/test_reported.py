"""Pages at rest that a sitemap of their host reports as changed are compared first."""

import pytest

from crawld.core.replica.sampling import REPORTED_AT_ONCE
from crawld.store.changes import hint, hint_source
from crawld.store.changes.hint import PageHint, PollResult
from crawld.store.engine.database import Database
from tests.unit.daemon.jobs.replicas.diverging_copies import DAY_S, HOSTS, Copies

PAGES = 20


@pytest.fixture
async def copies(tmp_path):
    """A copy of 20 pages, all at rest; the next ordinary sample is far away."""
    async with await Database.open(tmp_path / "w.db") as database:
        copies = Copies(database, 3)
        await copies.fill(PAGES)
        await copies.pass_hour()
        assert copies.all_rest
        await database.write(
            lambda connection: connection.execute(
                "UPDATE replica SET look_at = ?", (copies.now + 30 * DAY_S,)
            )
        )
        yield copies


async def report(copies, numbers):
    """Let the sitemap of the copy report some pages as changed now."""

    def accept(connection):
        host_id = connection.execute("SELECT host_id FROM host WHERE host = ?", HOSTS[1:]).get
        url = f"https://{HOSTS[1]}/sitemap.xml"
        source = hint_source.ensure(connection, 1, host_id, "sitemap", url, copies.now)
        told = [PageHint(copies.page_ids[number], copies.now, copies.now) for number in numbers]
        poll = PollResult(at=copies.now, of_pages=told)
        assert not hint.accept(connection, source.hint_source_id, poll)  # none is for the policies

    await copies.database.write(accept)


async def resumed_after(copies, hours):
    """Return the page numbers that returned within some hours."""
    numbers = {page_id: number for number, page_id in enumerate(copies.page_ids)}
    found = set()
    for _ in range(hours):
        found |= {numbers[page_id] for page_id in await copies.pass_hour() if page_id in numbers}
    return found


async def test_a_small_section_returns_soon_after_two_of_its_pages_are_reported(copies):
    copies.differing = frozenset({4, 13})
    await report(copies, copies.differing)
    copies.now += 60.0
    await copies.visit(copies.original_ids)
    await resumed_after(copies, 4)
    assert copies.none_rests


async def test_pages_whose_original_was_not_visited_since_wait_for_it_some_hours(copies):
    await report(copies, [4, 13])
    assert not {4, 13} & await resumed_after(copies, 3)
    assert {4, 13} <= await resumed_after(copies, 6)


async def test_a_page_that_changed_with_its_original_is_not_compared_for_it(copies):
    copies.changed = frozenset({4})
    await report(copies, copies.changed)
    copies.now += 60.0
    await copies.visit(copies.original_ids)
    assert not await resumed_after(copies, 12)


async def test_reports_of_a_source_that_is_often_wrong_are_ignored(copies):
    await report(copies, [4, 13])
    await copies.database.write(distrust)
    copies.now += 60.0
    await copies.visit(copies.original_ids)
    assert not {4, 13} & await resumed_after(copies, 3)


def distrust(connection):
    [(number, evidence)] = connection.execute("SELECT hint_source_id, evidence FROM hint_source")
    known = hint.load_reliability(evidence)
    for _ in range(20):
        known.learn_visit(1, changed=False)
    connection.execute(
        "UPDATE hint_source SET evidence = ? WHERE hint_source_id = ?",
        (hint.dump_reliability(known), number),
    )


async def test_few_are_compared_at_once(copies):
    await report(copies, range(PAGES))
    copies.now += 60.0
    await copies.visit(copies.original_ids)
    assert len(await resumed_after(copies, 1)) == REPORTED_AT_ONCE
