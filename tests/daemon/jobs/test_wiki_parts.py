"""Long lists of titles, and wikis whose APIs fail while they are resolved."""

import sys
import time

import pytest

from crawld.daemon.jobs.wiki_parts import job
from crawld.daemon.jobs.wiki_parts.categories import WikiCategoriesJob
from crawld.sources.mediawiki_members import MemberReason, Membership
from crawld.store.changes import wiki_member
from crawld.store.changes.wiki import list_wikis
from crawld.store.changes.wiki_member import Part
from tests.daemon.harness import until
from tests.daemon.jobs.conftest import history
from tests.daemon.jobs.wiki import error, is_for, reply


def quiet(given):
    """Answer requests for recent changes only: there are none."""
    alone = given.keys().isdisjoint({"titles", "pageids"})
    return reply({"query": {}}) if alone and "recentchanges" in given.get("list", "") else None


@pytest.fixture
def listing(wiki_of, daemon):
    """Return a function that mirrors listed titles of a wiki with some pages."""

    async def start(titles, *faults, pages=("Start",), **site):
        wiki = await wiki_of({title: history(1) for title in pages}, faults=[quiet, *faults])
        await daemon(
            wiki.url(),
            site={"api": True, "wiki_titles": titles, **site},
            jobs={"backfill_every_s": 0.05, "poll_share": 1e-3, "audit_share": 0.0},
        )
        return wiki

    return start


async def test_a_list_that_was_asked_for_before_an_event_does_not_undo_it(wiki_of, daemon, mirror):
    wiki = await wiki_of({"Start": history(1)}, faults=[quiet])
    running = await daemon(
        wiki.url(),
        site={"api": True, "wiki_titles": ["Start"]},
        jobs={"backfill_every_s": 0.05},
    )
    await until(lambda: mirror.rows("SELECT 1 FROM wiki_title WHERE outcome = 'page'"))
    [row] = await running.database.read(list_wikis)
    job, asked_at = WikiCategoriesJob(running.context, None, list_again=None), time.time()
    moved = Membership("New title", MemberReason.CATEGORY, "Category:X")
    # Applied while the answer is under way; the wiki's clock is behind.
    await job._members.put(row, 1, [moved], asked_at - 100.0)

    async def titles():
        part = Part(1, row.wiki_id)
        found = await running.database.read(wiki_member.list_by_reason, part, MemberReason.CATEGORY)
        return [each.title for each in found]

    await job._set(row, 1, "Category:X", [], asked_at)
    assert await titles() == ["New title"]
    await job._set(row, 1, "Category:X", [], time.time() + 1.0)
    assert await titles() == []


def outcomes(mirror):
    rows = mirror.rows("SELECT outcome, count(*) FROM wiki_title GROUP BY outcome")
    return dict(rows)


def asked(wiki):
    """Return the titles of each request that resolves some."""
    return [
        given["titles"].split("|")
        for given in wiki.api_requests()
        if "titles" in given and is_for(given, prop="info")
    ]


async def test_a_long_list_is_resolved_50_at_once(listing, mirror):
    there = [f"P{number}" for number in range(20)]
    titles = [f"P{number}" for number in range(2_000)]
    wiki = await listing(titles, pages=["Start", *there])
    await until(lambda: outcomes(mirror) == {"page": 20, "missing": 1_980})
    requests = asked(wiki)
    assert len(requests) == 40
    assert [title for some in requests for title in some] == titles
    visited = "SELECT count(*) FROM page WHERE state = 'visited'"
    await until(lambda: mirror.rows(visited) == [(21,)])
    # Missing titles are not requested.
    assert mirror.rows("SELECT count(*) FROM page") == [(21,)]
    assert mirror.rows("SELECT count(*) FROM wiki_member WHERE reason = 'title'") == [(2_000,)]


async def test_a_long_list_is_compared_on_another_thread(listing, mirror):
    """The event loop makes no row of the list: 50,000 of them would hold it for .2 s."""
    makes_row = job._row.__code__
    made = []
    before = sys.getprofile()
    sys.setprofile(
        lambda frame, event, _: made.append(event) if frame.f_code is makes_row else None
    )
    try:
        await listing([f"P{number}" for number in range(60)])
        await until(lambda: outcomes(mirror) == {"missing": 60})
    finally:
        sys.setprofile(before)
    assert made == []


async def test_a_title_that_the_wiki_cannot_answer_is_found_alone(listing, mirror):
    def poison(given):
        return error("internal_api_error") if "P7" in given.get("titles", "").split("|") else None

    titles = [f"P{number}" for number in range(50)]
    await listing(titles, poison, pages=["Start", *titles])
    await until(lambda: outcomes(mirror) == {"page": 49, "invalid": 1})
    [(written, detail)] = mirror.rows(
        "SELECT written, detail FROM wiki_title WHERE outcome = 'invalid'"
    )
    assert written == "P7"
    assert "internal_api_error" in detail


async def test_a_limit_of_titles_is_obeyed(listing, mirror):
    titles = [f"P{number}" for number in range(30)]

    def limited(given):
        many = len(given.get("titles", "").split("|")) > 8
        return error("toomanyvalues", limit=8) if many else None

    wiki = await listing(titles, limited)
    await until(lambda: outcomes(mirror) == {"missing": 30})
    sizes = [len(some) for some in asked(wiki)]
    # A question that a poll takes along is asked again alone before its list is divided.
    whole = sizes.count(30)
    assert whole in (1, 2)
    assert sizes[whole:] == [8, 8, 8, 6]


async def test_titles_wait_for_a_wiki_whose_databases_lag(listing, mirror):
    lagging = [error("maxlag", headers={"Retry-After": "1"})]

    def lag(given):
        wanted = "titles" in given and is_for(given, prop="info")
        return lagging.pop() if lagging and wanted else None

    wiki = await listing(["P1", "P2"], lag, pages=["Start", "P1"])
    await until(lambda: len(asked(wiki)) == 1)
    assert outcomes(mirror) == {"unresolved": 2}
    assert mirror.rows("SELECT count(*) FROM wiki_member") == [(2,)]
    await until(lambda: outcomes(mirror) == {"page": 1, "missing": 1})


async def test_a_discussion_that_is_listed_belongs_to_the_site(listing, mirror):
    await listing(["One", "Talk:One"], pages=["Start", "One", "Talk:One", "Talk:Start"])
    visited = "SELECT url FROM page WHERE state = 'visited' AND url LIKE '%Talk:%'"
    await until(lambda: mirror.rows(visited))
    [(url,)] = mirror.rows(visited)
    assert url.endswith("/Talk:One")
