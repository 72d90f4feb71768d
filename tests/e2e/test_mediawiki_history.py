"""Change histories of a real MediaWiki: complete, exact to the second, and politely requested."""

import time
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import pytest

from crawld.core.change.model import PageModel
from tests.e2e.daemon_config import crawl_requests, query_rows, wiki_site, write_config
from tests.peer.crawld_process import PROMPT
from tests.peer.nginx import PRECISION_S
from tests.peer.wiki_dump import EPOCH_AT, Revision, WikiPage

DELAY_S = 0.02
UNDONE = {"unresolved", "open", "read", "lost"}


@pytest.fixture
def configure(crawld, mediawiki):
    """Return a function that writes the daemon's config and returns its path."""

    def write(*, api=True, delay_s=DELAY_S, poll_share=0.001, **schedule):
        return write_config(
            crawld,
            wiki_site(mediawiki.url(), api=api),
            politeness={"host_delay_s": delay_s},
            store={"batch_max_age_s": 0.02},
            schedule=schedule,
            # Requests are counted: changes are polled rarely, and there are no audits.
            jobs={"backfill_every_s": 0.2, "poll_share": poll_share, "audit_share": 0.0},
        )

    return write


@pytest.fixture
def mirror(crawld, configure):
    """Return a function that starts a daemon on the wiki."""

    def start(**settings):
        crawld.start("run", "-c", configure(**settings), program=PROMPT)
        return crawld

    return start


def wait_until_read(crawld, *, pages):
    """Wait until `pages` histories are read and none is left to read."""
    return crawld.wait_until(
        lambda jobs: any(
            sum(job["progress"].get(state, 0) for state in ("complete", "missing")) >= pages
            and not any(job["progress"].get(state, 0) for state in UNDONE)
            for job in jobs
            if job["name"] == "backfill"
        ),
        "/jobs",
    )


def stored_histories(crawld):
    """Return the stored histories: {title: {(time, revision)}}."""
    stored = {}
    for title, at, revision in query_rows(
        crawld,
        "SELECT title, changed_at, revision_id FROM change JOIN wiki_page USING (page_id)"
        " WHERE source = 'revision'",
    ):
        stored.setdefault(title, set()).add((int(at), revision))
    return stored


def wiki_history(mediawiki, title):
    """Return the history of a title's page according to the wiki: {(time, revision)}."""
    answer = mediawiki.api(
        action="query",
        titles=title,
        redirects=1,
        prop="revisions",
        rvprop="ids|timestamp",
        rvlimit="max",
        **{"continue": ""},
    )
    [page] = answer["query"]["pages"]
    rows = page["revisions"]
    assert "continue" not in answer
    return {
        (int(datetime.fromisoformat(row["timestamp"]).timestamp()), row["revid"]) for row in rows
    }


def api_requests(mediawiki):
    """Return the parameters of crawld's requests to the API."""
    return [
        {key: value[0] for key, value in parse_qs(urlsplit(row.target).query).items()}
        for row in crawl_requests(mediawiki)
        if "/w/api.php" in row.target
    ]


def test_every_history_is_complete_to_the_second(mirror, mediawiki):
    crawld = mirror()
    articles = [page for page in mediawiki.pages if page.namespace == 0]
    wait_until_read(crawld, pages=31)
    stored = stored_histories(crawld)
    assert set(stored) >= {page.title for page in articles[:30]} | {"Main Page"}
    for title, found in stored.items():
        assert found == wiki_history(mediawiki, title), title
    # The dump contains the time of each revision.
    for page in articles[:30]:
        assert {at for at, _ in stored[page.title]} == {each.at for each in page.revisions}
    asked = api_requests(mediawiki)
    assert all(each["maxlag"] == "5" and each["formatversion"] == "2" for each in asked)
    times = [row.at for row in crawl_requests(mediawiki)]
    assert len(times) > len(asked) + 31
    assert min(later - at for at, later in pairwise(times)) >= DELAY_S - PRECISION_S
    [wiki] = crawld.get("/wikis")
    assert (wiki["trouble"], wiki["change_count"]) == (None, sum(map(len, stored.values())))


def test_models_and_reverts_are_derived_from_histories(mirror, mediawiki):
    crawld = mirror()
    wait_until_read(crawld, pages=31)
    records = query_rows(crawld, "SELECT title, record FROM model JOIN wiki_page USING (page_id)")
    models = {title: PageModel.from_bytes(record) for title, record in records}
    reverted = set()
    for page in mediawiki.pages[:30]:
        times = [revision.at for revision in page.revisions]
        model = models[page.title]
        assert (model.first_at, model.last_change_at) == (min(times), max(times))
        assert model.change_known
        seen = [revision.text for revision in page.revisions]
        reverted |= {
            (page.title, revision.at)
            for place, revision in enumerate(page.revisions)
            if revision.text in seen[:place]
        }
    marked = query_rows(
        crawld,
        "SELECT title, changed_at FROM change JOIN wiki_page USING (page_id) WHERE kind = 'revert'",
    )
    assert {(title, int(at)) for title, at in marked} == reverted


def test_reading_a_long_history_resumes_after_a_kill(mirror, mediawiki):
    title = mediawiki.pages[0].title
    times = [EPOCH_AT - 9_000_000 + 60 * number for number in range(2_300)]
    first = Revision(times[0], f"Text of [[{title}]].")
    mediawiki.import_pages([WikiPage("Long history", (first,))])
    mediawiki.add_revisions("Long history", times[1:])
    mediawiki.edit("Main Page", f"[[Long history]] and [[{title}]]")
    crawld = mirror()
    crawld.wait_until(
        lambda _: any(
            cursor
            for (cursor,) in query_rows(
                crawld, "SELECT cursor FROM wiki_page WHERE title = 'Long history'"
            )
        )
    )
    crawld.kill()
    [(kept,)] = query_rows(
        crawld,
        "SELECT count(*) FROM change WHERE page_id ="
        " (SELECT page_id FROM wiki_page WHERE title = 'Long history')",
    )
    assert kept > 0
    before = len([each for each in api_requests(mediawiki) if "rvcontinue" in each])
    mirror()
    wait_until_read(crawld, pages=31)
    found = stored_histories(crawld)["Long history"]
    assert sorted(at for at, _ in found) == times
    continued = [each for each in api_requests(mediawiki) if "rvcontinue" in each]
    # 2,300 revisions are five batches: four continuations, one of them possibly repeated.
    assert before <= len(continued) <= 5


def test_revisions_with_equal_times_or_unordered_ids_are_kept(mirror, mediawiki):
    title = mediawiki.pages[1].title
    at = EPOCH_AT - 86_400 * 365
    late = [Revision(at, "One text."), Revision(at, "Another text."), Revision(at - 7, "Older.")]
    mediawiki.import_pages([WikiPage(title, tuple(late))])
    crawld = mirror()
    wait_until_read(crawld, pages=31)
    found = stored_histories(crawld)[title]
    assert found == wiki_history(mediawiki, title)
    ids = [revision for _, revision in sorted(found)]
    assert ids != sorted(ids)
    assert len([1 for changed_at, _ in found if changed_at == at]) == 2


def test_the_api_is_not_used_unless_enabled(mirror, mediawiki):
    crawld = mirror(api=False)
    crawld.wait_until(lambda status: status["pages"]["visited"] >= 31)
    before = crawld.get("/jobs")
    crawld.post("/jobs/backfill/run")
    crawld.wait_until(
        lambda jobs: jobs[0]["last_finished_at"] != before[0]["last_finished_at"], "/jobs"
    )
    assert api_requests(mediawiki) == []


def test_robots_rules_that_name_crawld_win(mirror, mediawiki):
    mediawiki.set_robots("User-agent: *\nAllow: /\n\nUser-agent: crawld\nDisallow: /w/\n")
    crawld = mirror()
    [wiki] = crawld.wait_until(lambda wikis: wikis and wikis[0]["trouble"], "/wikis")
    assert wiki["trouble"] == "forbidden"
    assert api_requests(mediawiki) == []


def test_a_lagged_wiki_is_given_time(mirror, mediawiki):
    began_at = time.time()
    with mediawiki.lag(7):
        crawld = mirror()
        [wiki] = crawld.wait_until(lambda wikis: wikis and wikis[0]["trouble"], "/wikis")
        assert wiki["trouble"] == "lagged"
        # The wiki asks for a wait of five seconds.
        at = crawld.get("/status")["now"]
        assert began_at + 5 <= wiki["closed_until"] <= at + 5
        assert wiki["change_count"] == 0
    wait_until_read(crawld, pages=31)
    times = [row.at for row in crawl_requests(mediawiki) if "/w/api.php" in row.target]
    assert times[1] - times[0] >= 5


def test_read_only_wikis_are_read(mirror, mediawiki):
    with mediawiki.read_only():
        crawld = mirror()
        wait_until_read(crawld, pages=31)
    title = mediawiki.pages[2].title
    assert stored_histories(crawld)[title] == wiki_history(mediawiki, title)


def unread_titles(crawld):
    """Return the titles with unread histories, the next one first."""
    rows = query_rows(
        crawld,
        "SELECT title FROM wiki_page WHERE state = 'open' AND tries = 0"
        " AND title <> 'Main Page' ORDER BY page_id",
    )
    return [title for (title,) in rows]


@contextmanager
def paused_before_reading(mirror, configure, **more):
    """Pause a daemon before it has read all histories; yield it and the unread titles.

    All pages are visited before, and the wiki gets at most three requests per second: half of 31
    histories stay unread for five seconds, however slow the daemon is.
    """
    crawld = mirror(api=False)
    crawld.wait_until(lambda status: status["pages"]["visited"] >= 31)
    crawld.terminate()
    mirror(delay_s=0.3, **more)
    crawld.wait_until(lambda _: len(unread_titles(crawld)) > 15)
    crawld.post("/pause", {"host": "127.0.0.1"})
    yield crawld, unread_titles(crawld)
    configure(**more)
    crawld.post("/reload")
    crawld.post("/resume", {"host": "127.0.0.1"})


def page_states(crawld):
    """Return the state of each page: {title: (state, title shown, detail)}."""
    rows = query_rows(crawld, "SELECT title, state, shown_title, detail FROM wiki_page")
    return {title: tuple(rest) for title, *rest in rows}


def logged_changes(crawld, title):
    """Return the logged changes of a page: [(kind, time)]."""
    return query_rows(
        crawld,
        "SELECT kind, changed_at FROM change JOIN wiki_page USING (page_id)"
        " WHERE title = ? AND source = 'log' ORDER BY changed_at",
        title,
    )


def test_pages_moved_and_deleted_while_they_are_read(mirror, configure, mediawiki):
    # Without polls: a poll would move the histories to the pages' new titles.
    with paused_before_reading(mirror, configure, poll_share=0.0) as (crawld, titles):
        moved, deleted, away = titles[-3:]
        mediawiki.move(moved, "Moved elsewhere")
        mediawiki.delete(deleted)
        mediawiki.move(away, "Gone elsewhere", redirect=False)
    wait_until_read(crawld, pages=31)
    found = page_states(crawld)
    assert found[moved] == ("complete", "Moved elsewhere", None)
    assert stored_histories(crawld)[moved] == wiki_history(mediawiki, moved)
    assert found[deleted][::2] == ("missing", "deletion")
    assert found[away][::2] == ("missing", "move: Gone elsewhere")
    # The times are those of the wiki's log.
    for title, kind in ((deleted, "deletion"), (away, "move")):
        [entry] = mediawiki.api(action="query", list="logevents", letitle=title)["query"][
            "logevents"
        ]
        at = datetime.fromisoformat(entry["timestamp"]).timestamp()
        assert logged_changes(crawld, title) == [(kind, at)]
    # All other histories are complete.
    others = {title for title, (state, *_) in found.items() if state == "complete"}
    assert len(others) >= 29
    stored = stored_histories(crawld)
    assert all(stored[title] == wiki_history(mediawiki, title) for title in others)


def test_a_restored_page_has_all_its_revisions(mirror, configure, mediawiki):
    with paused_before_reading(mirror, configure, poll_share=0.25) as (crawld, titles):
        title = titles[-1]
        mediawiki.delete(title)
    wait_until_read(crawld, pages=31)
    assert page_states(crawld)[title][0] == "missing"
    before = stored_histories(crawld)[title]
    mediawiki.undelete(title)
    assert before < wiki_history(mediawiki, title)
    crawld.terminate()
    # The page is visited again and exists, so its history is read again. If a visit found it gone
    # in the meantime, its next visit is due in a day, unless the wiki's log reports the
    # restoration.
    mirror(min_revisit_s=0.5, poll_share=0.25)
    crawld.wait_until(lambda _: page_states(crawld)[title][0] == "complete")
    assert stored_histories(crawld)[title] == wiki_history(mediawiki, title)


def test_edits_after_the_backfill_are_added(mirror, mediawiki):
    crawld = mirror()
    wait_until_read(crawld, pages=31)
    title = mediawiki.pages[6].title
    for number in range(3):
        mediawiki.edit(title, f"Written later, {number}.")
    before = len(api_requests(mediawiki))
    crawld.terminate()
    mirror(min_revisit_s=0.5)
    crawld.wait_until(lambda _: stored_histories(crawld)[title] == wiki_history(mediawiki, title))
    # Only the histories of the edited page and of pages that include it were requested.
    asked = api_requests(mediawiki)[before:]
    assert len({each["pageids"] for each in asked if "pageids" in each}) <= 2
    # The poll for changes requests all titles, and the time.
    named = [each["titles"] for each in asked if "titles" in each and "curtimestamp" not in each]
    assert {name for titles in named for name in titles.split("|")} <= {title, "Main Page"}
