"""Wiki histories through an API with all kinds of faults."""

import math
import time
from itertools import pairwise

import pytest

from crawld.core.change.model import PageModel
from crawld.daemon.jobs.wiki_history import job as wiki_history_job
from crawld.daemon.jobs.wiki_history import reader
from crawld.daemon.jobs.wiki_history.job import FIRST_COPY_WAIT_S
from crawld.daemon.jobs.wiki_history.reader import MAX_FAILURES
from tests.daemon.harness import make_site, run_job, until
from tests.daemon.jobs.conftest import EPOCH_AT, history
from tests.daemon.jobs.wiki import Answer, error, is_for, page_text, reply


def once(*answers):
    """Return a fault that gives these answers, one per request, then none."""
    left = list(answers)
    return lambda given: left.pop(0) if left else None


def when(answer, **wanted):
    """Return a fault for requests with these parameters."""
    return lambda given: answer if is_for(given, **wanted) else None


def times(rows):
    return [float(at) for _, at, _ in rows]


class TestHistories:
    async def test_parts_of_a_history_are_joined(self, wiki_of, backfilling, wikis):
        pages = {"Start": history(7), "Long": history(23, start=100)}
        wiki = await wiki_of(pages, rvlimit=5)
        await backfilling(wiki)
        await until(lambda: wikis.complete("Start", "Long"))
        for title, rows in pages.items():
            assert wikis.changes(title) == [(at, number, None) for number, at, _ in rows]
        assert wikis.wiki()["changes"] == 30
        parts = [given for given in wiki.api_requests() if "rvcontinue" in given]
        assert len(parts) == 1 + 4

    async def test_every_page_gets_its_first_part_before_any_its_second(
        self, wiki_of, backfilling, wikis
    ):
        pages = {name: history(12, start=100 * n) for n, name in enumerate(["Start", "B", "C"], 1)}
        wiki = await wiki_of(pages, rvlimit=5)
        await backfilling(wiki)
        await until(lambda: wikis.complete(*pages))
        asked = [given.get("rvcontinue") for given in wiki.api_requests() if "pageids" in given]
        assert asked.index("10") > max(n for n, cursor in enumerate(asked) if cursor is None)

    async def test_a_long_history_ends_at_the_cap(self, wiki_of, backfilling, wikis, mirror):
        rows = history(200)
        wiki = await wiki_of({"Start": rows}, rvlimit=10)
        await backfilling(wiki, jobs={"backfill_revisions": 50})
        await until(lambda: wikis.complete("Start"))
        # The newest revisions are stored; the rest is marked as missing.
        assert [at for at, _, _ in wikis.changes("Start")] == times(rows[-50:])
        assert mirror.rows("SELECT capped FROM wiki_page") == [(1,)]

    async def test_models_hold_the_times_that_changed_the_text(
        self, wiki_of, backfilling, wikis, mirror
    ):
        texts = ["a", "b", "b", "a", "c"]
        rows = [(n, EPOCH_AT + 1_000 * n, text) for n, text in enumerate(texts, 1)]
        wiki = await wiki_of({"Start": rows})
        await backfilling(wiki)
        await until(lambda: wikis.complete("Start"))
        kinds = [kind for _, _, kind in wikis.changes("Start")]
        assert kinds == [None, None, "null", "revert", None]
        [(record,)] = mirror.rows("SELECT record FROM model")
        model = PageModel.from_bytes(record)
        assert (model.first_at, model.last_change_at) == (rows[0][1], rows[4][1])
        assert model.gaps_s == [1_000.0, 2_000.0]
        # The visit that brought the page is still counted.
        assert model.visits >= 1

    async def test_two_urls_of_one_page_cost_one_history(
        self, wiki_of, backfilling, wikis, nursery
    ):
        wiki = await wiki_of({"Start": history(9), "Other": []}, rvlimit=3)
        steps = {"redirects": [{"from": "Other", "to": "Start"}]}

        def redirected(given):
            if "Other" not in given.get("titles", "").split("|"):
                return None
            page = {"ns": 0, "title": "Start", "pageid": 1, "revisions": wiki._rows("Start")[:1]}
            return reply({"query": {**steps, "pages": [page]}})

        wiki.faults.append(redirected)
        await backfilling(wiki)
        await until(lambda: wikis.complete("Start", "Other"))
        assert wikis.changes("Other") == wikis.changes("Start")
        assert len(wikis.changes("Start")) == 9

    async def test_a_new_page_comes_before_a_backlog(
        self, wiki_of, backfilling, wikis, monkeypatch
    ):
        monkeypatch.setattr(reader, "REGISTER_EVERY_S", 0.0)
        wiki = await wiki_of({"Start": history(4_000)}, rvlimit=2)
        daemon = await backfilling(wiki)
        await until(lambda: any("rvcontinue" in given for given in wiki.api_requests()))
        wiki.pages["New"] = history(2, start=9_000)
        [site] = daemon.state.sites.values()
        await daemon.state.add_seeds(site, [wiki.url("New")])
        await until(lambda: wikis.complete("New"))
        assert wikis.states()["Start"] == "open"


class TestTrouble:
    @pytest.mark.parametrize(
        ("answer", "trouble", "pause_s"),
        [
            (error("maxlag", lag=9, headers={"Retry_After": "7"}), "lagged", 7),
            (error("readonly"), "read_only", 60),
            (error("readapidenied"), "closed", 3_600),
            (page_text("<h1>Maintenance</h1>"), "not_json", 600),
            (Answer(200, b""), "not_json", 600),
            (error("internal_api_error_DBQueryError", 500), "broken", 2),
            (Answer(404), "closed", 3_600),
            (reply({"query": {"general": {"generator": "DokuWiki"}}}), "not_json", 600),
        ],
    )
    async def test_trouble_is_recorded_and_starts_a_back_off(
        self, wiki_of, backfilling, wikis, answer, trouble, pause_s
    ):
        wiki = await wiki_of({"Start": history(3)}, faults=[lambda given: answer])
        began_at = time.time()
        daemon = await backfilling(wiki)
        await until(lambda: wikis.wiki().get("trouble"))
        seen = wikis.wiki()
        assert (seen["trouble"], seen["count"]) == (trouble, 1)
        assert began_at + pause_s <= seen["closed_until"] <= daemon.clock.now() + pause_s
        # The pages are not affected: the host is not in back-off.
        assert daemon.state.hosts["a.test"].backoff.level == 0
        assert len(wiki.api_requests()) == 1

    async def test_retry_after_pauses_the_whole_host(self, wiki_of, backfilling, wikis, mirror):
        answer = Answer(503, b"busy", (("Retry-After", "120"),))
        wiki = await wiki_of({"Start": history(3)}, faults=[lambda given: answer])
        daemon = await backfilling(wiki)
        await until(lambda: wikis.wiki().get("trouble"))
        assert wikis.wiki()["trouble"] == "unavailable"
        host = daemon.state.hosts["a.test"]
        assert 60 < host.open_at(daemon.clock) - daemon.clock.monotonic() <= 120
        [(closed_until, level)] = mirror.rows("SELECT closed_until, backoff_level FROM host")
        assert 60 < closed_until - daemon.clock.now() <= 120
        assert level == 0  # the server said when to return

    async def test_an_outage_of_the_host_does_not_count_against_the_page(
        self, wiki_of, backfilling, wikis, mirror
    ):
        busy = Answer(503, b"busy", (("Retry-After", "120"),))
        wiki = await wiki_of({"Start": history(3)})
        wiki.faults.append(lambda given: busy if "pageids" in given else None)
        await backfilling(wiki)
        # A poll of the recent changes may take the history along.
        refused = "SELECT 1 FROM hint_source WHERE trouble_count > 0"
        await until(lambda: wikis.wiki().get("trouble") or mirror.rows(refused))
        assert mirror.rows("SELECT state, failure_count FROM wiki_page") == [("open", 0)]

    async def test_an_endless_response_is_cut_off(self, wiki_of, backfilling, wikis):
        wiki = await wiki_of({"Start": history(3)}, faults=[lambda given: Answer(200, b"x" * 9**8)])
        await backfilling(wiki)
        await until(lambda: wikis.wiki().get("trouble"))
        assert wikis.wiki()["trouble"] == "unreachable"
        assert "too_large" in wikis.wiki()["detail"]

    async def test_a_smaller_title_limit_is_learned(self, wiki_of, backfilling, wikis):
        pages = {"Start": history(2)} | {f"P{n}": history(2, start=10 * n) for n in range(1, 12)}
        wiki = await wiki_of(pages, titles_limit=4)
        await backfilling(wiki)
        await until(lambda: wikis.complete(*pages))
        named = [
            len(given["titles"].split("|")) for given in wiki.api_requests() if "titles" in given
        ]
        refused = [count for count in named if count > 4]
        assert len(refused) <= 2  # once by this job, once by the probe for changes
        assert max(count for count in named if count <= 4) <= 4

    async def test_an_unknown_cursor_restarts_the_history(self, wiki_of, backfilling, wikis):
        fault = once(error("badcontinue"))
        wiki = await wiki_of({"Start": history(12)}, rvlimit=5)
        wiki.faults.append(lambda given: fault(given) if "rvcontinue" in given else None)
        await backfilling(wiki)
        await until(lambda: wikis.complete("Start"))
        assert [at for at, _, _ in wikis.changes("Start")] == times(history(12))

    async def test_a_page_whose_cursors_always_fail_is_refused(self, wiki_of, backfilling, wikis):
        wiki = await wiki_of({"Start": history(12)}, rvlimit=5)
        refused = error("badcontinue")
        wiki.faults.append(lambda given: refused if "rvcontinue" in given else None)
        await backfilling(wiki)
        await until(lambda: wikis.states().get("Start") == "refused")
        assert len(wikis.changes("Start")) == 5

    async def test_a_repeating_continuation_ends(self, wiki_of, backfilling, wikis):
        rows = history(5)
        wiki = await wiki_of({"Start": rows})
        page = {"ns": 0, "title": "Start", "pageid": 1, "revisions": wiki._rows("Start")[:2]}
        circle = reply({"continue": {"rvcontinue": "x"}, "query": {"pages": [page]}})
        wiki.faults.append(when(circle, pageids=1))
        await backfilling(wiki)
        await until(lambda: wikis.states().get("Start") == "refused")
        assert len(wikis.changes("Start")) == 2

    async def test_one_failing_page_does_not_stop_the_others(
        self, wiki_of, backfilling, wikis, mirror
    ):
        pages = {"Start": history(3), "Bad": history(3, start=50), "Good": history(3, start=70)}
        wiki = await wiki_of(pages)
        broken = when(error("internal_api_error_Exception"), pageids=2)
        wiki.faults.append(broken)
        await backfilling(wiki)
        await until(lambda: wikis.complete("Start", "Good"))
        assert wikis.states()["Bad"] == "open"
        [(failures, detail)] = mirror.rows(
            "SELECT failure_count, detail FROM wiki_page WHERE title = 'Bad'"
        )
        assert failures == 1 < MAX_FAILURES
        assert "internal_api_error" in detail

    async def test_a_moved_api_is_followed_on_its_own_host(self, wiki_of, backfilling, wikis):
        wiki = await wiki_of({"Start": history(3)}, api="/new/api.php")

        view = wiki._view

        def moved(title):
            if title.startswith("/w/api.php"):
                return Answer(301, b"", (("Location", "/new/api.php?x"),))
            return view(title)

        wiki._view = moved
        daemon = await backfilling(wiki)
        await until(lambda: wikis.wiki().get("trouble"))
        assert wikis.wiki()["trouble"] == "moved"
        assert wikis.wiki()["api_url"] == f"http://a.test:{wiki.port}/new/api.php"
        assert daemon.background.jobs is not None


class TestPermission:
    async def test_without_permission_the_api_is_not_used(self, wiki_of, backfilling, mirror):
        wiki = await wiki_of({"Start": history(3)})
        daemon = await backfilling(wiki, api=False)
        await until(lambda: mirror.rows("SELECT 1 FROM page WHERE state = 'visited'"))
        await run_job(daemon, "backfill")
        assert wiki.api_requests() == []

    async def test_robots_rules_for_all_agents_do_not_close_the_api(
        self, wiki_of, backfilling, wikis
    ):
        wiki = await wiki_of({"Start": history(3)}, robots="User-agent: *\nDisallow: /w/\n")
        await backfilling(wiki)
        await until(lambda: wikis.complete("Start"))

    async def test_robots_rules_for_our_agent_close_the_api(self, wiki_of, backfilling, wikis):
        robots = "User-agent: crawld\nDisallow: /w/\n"
        wiki = await wiki_of({"Start": history(3)}, robots=robots)
        await backfilling(wiki)
        await until(lambda: wikis.wiki().get("trouble"))
        assert wikis.wiki()["trouble"] == "forbidden"
        assert wiki.api_requests() == []

    async def test_an_api_on_a_foreign_domain_is_not_used(self, wiki_of, backfilling, mirror):
        wiki = await wiki_of({"Start": history(3)})
        view = wiki._view

        def elsewhere(title):
            answer = view(title)
            return Answer(
                answer.status,
                answer.body.replace(b"//a.test:", b"//b.test:"),
                content_type=answer.content_type,
            )

        wiki._view = elsewhere
        await backfilling(wiki)
        await until(lambda: mirror.rows("SELECT 1 FROM wiki"))
        assert mirror.rows("SELECT api_url FROM wiki") == [(None,)]
        assert wiki.api_requests() == []


class TestPoliteness:
    async def test_every_request_keeps_the_host_delay(self, wiki_of, backfilling, wikis):
        pages = {"Start": history(12), "B": history(12, start=50)}
        wiki = await wiki_of(pages, rvlimit=4)
        await backfilling(wiki, politeness={"host_delay_s": 0.05})
        await until(lambda: wikis.complete(*pages))
        assert len(wiki.api_requests()) >= 8
        gaps = [later - at for (at, _), (later, _) in pairwise(wiki.requests)]
        assert min(gaps) >= 0.05

    async def test_on_a_busy_host_the_api_gets_its_share_of_slots(
        self, wiki_of, backfilling, monkeypatch
    ):
        # Pages are registered at once, not after the next poll.
        monkeypatch.setattr(reader, "FEED_MAX_AGE_S", 0.0)
        pages = {f"P{n}": history(2, start=10 * n) for n in range(60)} | {"Start": history(2)}
        wiki = await wiki_of(pages)
        await backfilling(
            wiki,
            politeness={"host_delay_s": 0.02},
            schedule={"min_revisit_s": 0.0},
            jobs={"backfill_share": 0.2, "poll_share": 0.1, "min_poll_s": 0.2},
        )
        await until(lambda: sum("prop" in each for each in wiki.api_requests()) >= 12)
        first = next(n for n, (_, target) in enumerate(wiki.requests) if "api.php" in target)
        since = wiki.requests[first + 1 :]
        # Polls and probes have a budget of their own.
        asked = sum("revisions" in target and "curtimestamp" not in target for _, target in since)
        assert asked / len(since) <= 0.2 + 2 / len(since)

    async def test_on_an_idle_host_the_api_gets_every_slot(self, wiki_of, backfilling, wikis):
        wiki = await wiki_of({"Start": history(60)}, rvlimit=2)
        await backfilling(wiki, politeness={"host_delay_s": 0.02}, jobs={"backfill_share": 0.01})
        await until(lambda: wikis.complete("Start"))
        # With a hundredth of the slots it would take a minute.
        times = [at for at, target in wiki.requests if "api.php" in target]
        assert math.isclose(len(times), 32, abs_tol=2)


async def test_a_site_without_a_copy_is_checked_again_soon(serve, daemon, mirror):
    web = await serve(make_site("b.test"))
    site = {"api": True, "hosts": ["b.test"]}
    running = await daemon("http://a.test:1/", site=site, jobs={"backfill_every_s": 600.0})
    [job] = [
        each.job for each in await running.background.jobs.states() if each.job.name == "backfill"
    ]
    await until(lambda: job.every_s == FIRST_COPY_WAIT_S, what="a run that saw no copy")
    [active] = running.state.sites.values()
    await running.state.add_seeds(active, [web.url(host="b.test")])
    await until(lambda: mirror.rows("SELECT 1 FROM version"), what="a copy")
    running.background.jobs.run_soon("backfill")
    await until(lambda: job.every_s == 600.0, what="a run that saw one")


async def test_a_wiki_whose_first_page_comes_late_does_not_wait_for_another_in_trouble(
    wiki_of, daemon, mirror, monkeypatch
):
    monkeypatch.setattr(wiki_history_job, "FIRST_COPY_WAIT_S", 0.1)
    busy = await wiki_of({"Start": history(3)})
    busy.faults.append(lambda given: error("maxlag", 503, {"Retry-After": "600"}))
    late = await wiki_of({"Start": history(3)}, host="b.test")
    hosts = ["b.test", "c.test"]
    other = {"name": "late", "api": True, "seeds": ["http://c.test:1/"], "hosts": hosts}
    running = await daemon(
        busy.url(), site={"api": True}, beside=[other], jobs={"backfill_every_s": 600.0}
    )
    await until(lambda: mirror.rows("SELECT 1 FROM version"), what="a copy")
    running.background.jobs.run_soon("backfill")
    await until(busy.api_requests, what="a request to the first wiki")
    [_, site] = running.state.sites.values()
    await running.state.add_seeds(site, [late.url()])
    await until(late.api_requests, what="a request to the other wiki")
