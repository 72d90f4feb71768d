"""Hosts that answer by language, device and type are asked for the form that is wanted."""

import pytest
import trio

from crawld.core.units import DAY_S, HOUR_S
from crawld.daemon.run import run_daemon
from crawld.simweb.answer_forms import (
    GERMAN,
    MOBILE,
    EntityTags,
    FormAnswer,
    FormSite,
    by_count,
    by_device,
    by_hour,
    by_language,
    by_type,
    never,
)
from crawld.store.versions.body import decode
from tests.daemon.control_client import get
from tests.daemon.harness import until

PAGES = 12

PROFILES = [
    {"name": "plain"},
    {"name": "german", "accept_language": "de"},
    {"name": "phone", "user_agent_suffix": "Mobile"},
    {"name": "html", "accept": "text/html"},
]
TRIALS = len(PROFILES) - 1
SITE = {"profiles": PROFILES, "wanted": {"content_types": ["text/html"], "language": "de"}}


def copies(mirror):
    """Return the stored copies as (host, profile, whether German)."""
    return [
        (host.removesuffix(".test"), profile, b"Seite" in decode(*stored))
        for host, profile, *stored in mirror.rows(
            "SELECT host, profile, encoding, body.size_bytes, data"
            " FROM version JOIN body USING (body_id) JOIN page USING (page_id)"
            " JOIN host USING (host_id)"
        )
    ]


def visits_of(mirror):
    return mirror.rows("SELECT outcome, failure FROM visit ORDER BY visit_id")


@pytest.fixture
def a_site(serve, wall):
    """Return a function that serves a host by a rule; it returns its site and web."""

    async def start(rule, **more):
        site = FormSite({"a.test": rule}, PAGES, **more)
        return site, await serve(site, clock=wall)

    return start


async def test_each_host_is_asked_in_the_way_that_brings_the_wanted_form(serve, mirror):
    rules = {"a.test": by_language, "b.test": by_device, "c.test": by_type}
    site = FormSite(rules, PAGES)
    web = await serve(site)
    await mirror.run(*(web.url(host=host) for host in rules), site=SITE)
    pages = PAGES + 1
    found = copies(mirror)
    assert {(host, profile) for host, profile, _ in found} == {
        *(("a", "german"), ("b", "phone"), ("c", "html"))
    }
    assert len(found) == 3 * pages
    assert all(german for *_, german in found)
    assert len(site.asked) <= 3 * (pages + TRIALS)
    # Whatever the profile, each request names crawld and the contact.
    for asked in site.asked:
        assert asked.headers["user-agent"].startswith("crawld/")
        assert "test@example.org" in asked.headers["user-agent"]


async def test_a_host_that_never_shows_the_wanted_form_costs_little_and_is_stored(a_site, mirror):
    site, web = await a_site(never)
    await mirror.run(web.url(), site=SITE)
    assert copies(mirror) == [("a", None, False)] * (PAGES + 1)
    assert len(site.asked) <= PAGES + 1 + TRIALS


@pytest.fixture
def visit_again(daemon, mirror, wall):
    """Return a function that mirrors a host, changes its rule, and visits all pages again."""

    async def again(site, web, rule, *, days=1, day_s=DAY_S, **keys):
        running = await daemon(web.url(), site=SITE | keys)
        await until(lambda: len(visits_of(mirror)) >= PAGES + 1, what="all first copies")
        await running.crawl.recorder.drain()
        before, requests = len(visits_of(mirror)), len(site.asked)
        site.rules["a.test"] = rule
        for day in range(1, days + 1):
            wall.shift_s += day_s
            await running.crawl.schedule.wake_all()
            # Pages of unwanted answers wait longer than a day.
            enough = before + (PAGES + 1 if days == 1 else 2 * day)
            await until(lambda: len(visits_of(mirror)) >= enough, what="the next visits")  # noqa: B023
        return running, visits_of(mirror)[before:], site.asked[requests:]

    return again


async def test_a_change_of_mind_is_found_within_a_visit_and_is_no_change(
    a_site, mirror, visit_again
):
    site, web = await a_site(by_language)
    running, _, requests = await visit_again(site, web, by_device)
    found = copies(mirror)
    assert all(german for *_, german in found)
    assert {profile for _, profile, _ in found} == {"german", "phone"}
    first = requests[0].path
    tries = [asked.path for asked in requests[: len(PROFILES)]]
    assert tries.count(first) <= len(PROFILES)
    # Another variant of the same page: a version, neither a change nor an event.
    assert mirror.rows("SELECT DISTINCT change_count FROM page") == [(1,)]
    assert mirror.rows("SELECT DISTINCT kind FROM event") == [("new",)]
    shown = (await get(running, "/hosts/a.test")).json()["profiles"]
    assert [(each["section"], each["profile"]) for each in shown] == [("", "phone")]
    assert shown[0]["trials"] <= 2 * TRIALS


def by_device_alike(request):
    """Answer small devices as `by_language` answers those who want German."""
    return GERMAN if by_device(request) is MOBILE else by_device(request)


async def test_the_same_bytes_by_another_profile_are_no_version(a_site, mirror, visit_again):
    site, web = await a_site(by_language)
    _, visits, _ = await visit_again(site, web, by_device_alike)
    assert set(visits) == {("unchanged", None)}
    assert copies(mirror) == [("a", "phone", True)] * (PAGES + 1)


async def test_a_copy_in_the_wanted_form_is_never_replaced_by_another(a_site, mirror, visit_again):
    site, web = await a_site(by_language)
    # After three pages the host backs off: not all pages are asked for at once.
    _, visits, _ = await visit_again(site, web, never, days=2)
    assert set(visits) == {("failed", "unwanted_form")}
    assert copies(mirror) == [("a", "german", True)] * (PAGES + 1)


async def test_what_was_learnt_survives_a_restart(a_site, mirror):
    site, web = await a_site(by_device)
    await mirror.run(web.url(), site=SITE | {"max_pages": 1})
    requests = len(site.asked)
    await mirror.run(web.url("/p1"), site=SITE)
    assert {asked.headers["user-agent"][-6:] for asked in site.asked[requests:]} == {"Mobile"}


@pytest.fixture
def visit_all(mirror, wall):
    """Return a function that visits all pages of a host once, a day after the last time."""

    async def once(site, web, keys):
        before = len(visits_of(mirror)) if mirror.db.exists() else 0
        requests = len(site.asked)
        wall.shift_s += DAY_S
        async with trio.open_nursery() as nursery:
            all_conditional = {"confirm_pages": 0, "check_share": 0.0}
            start = mirror.make_start(web.url(), once=False, site=keys, content=all_conditional)
            running = await nursery.start(run_daemon, start)
            await until(
                lambda: mirror.db.exists() and len(visits_of(mirror)) > before + PAGES,
                what="all visits",
            )
            await running.drain()
            running.stop_now()
        return visits_of(mirror)[before:], site.asked[requests:]

    return once


# --- the form of a request -----------------------------------------------------------------------


async def test_profiles_for_a_mirror_that_had_none_are_no_changes(a_site, mirror, visit_all):
    # One ETag for all forms of a page: sent with another form it would keep German away for good.
    site, web = await a_site(by_language, tags=EntityTags.PAGE)
    await visit_all(site, web, {})
    assert copies(mirror) == [("a", None, False)] * (PAGES + 1)
    await visit_all(site, web, SITE)
    newest = "SELECT profile FROM page JOIN version USING (version_id)"
    assert set(mirror.rows(newest)) == {("german",)}
    assert mirror.rows("SELECT DISTINCT change_count FROM page") == [(1,)]
    assert mirror.rows("SELECT DISTINCT kind FROM event") == [("new",)]


FRENCH = {"name": "german", "accept_language": "fr"}


async def test_validators_are_sent_only_in_the_form_that_got_them(a_site, visit_all):
    site, web = await a_site(by_language, tags=EntityTags.PAGE)
    german = {"profiles": [PROFILES[1]], "wanted": {"min_bytes": 1}}
    french = {"profiles": [FRENCH], "wanted": {"min_bytes": 1}}
    # The same name with another header is another form: what is held is no answer to it.
    for keys, has_tags in ((german, False), (german, True), (french, False), (french, True)):
        _, requests = await visit_all(site, web, keys)
        assert {"if-none-match" in asked.headers for asked in requests} == {has_tags}


async def test_a_profile_without_conditions_sends_none(a_site, mirror, visit_all):
    site, web = await a_site(by_language, tags=EntityTags.FORM)
    profile = {"name": "german", "accept_language": "de", "conditional": False}
    for _ in range(2):
        await visit_all(site, web, {"profiles": [profile], "wanted": {"language": "de"}})
    assert not any("if-none-match" in asked.headers for asked in site.asked)
    assert len(copies(mirror)) == PAGES + 1


START = {"name": "start", "accept_language": "de", "first_bytes": 2_000}


async def test_first_bytes_are_asked_for_and_kept_as_truncated(a_site, mirror, visit_all):
    site, web = await a_site(by_language, padding=50_000, tags=EntityTags.FORM)
    for outcome in ("changed", "not_modified"):
        visits, requests = await visit_all(
            site, web, {"profiles": [START], "wanted": {"language": "de"}}
        )
        assert {asked.headers["range"] for asked in requests} == {"bytes=0-1999"}
        assert set(visits) == {(outcome, None)}
    stored = mirror.rows(
        "SELECT truncated, body.size_bytes, status FROM version JOIN body USING (body_id)"
    )
    assert stored == [(1, 2_000, 200)] * (PAGES + 1)


async def test_another_range_is_another_form(a_site, mirror, visit_all):
    site, web = await a_site(by_language, padding=50_000, tags=EntityTags.FORM)
    whole = {"name": "start", "accept_language": "de"}
    for each in (START, whole):
        await visit_all(site, web, {"profiles": [each], "wanted": {"language": "de"}})
    newest = "SELECT DISTINCT truncated FROM page JOIN version USING (version_id)"
    assert mirror.rows(newest) == [(0,)]
    assert mirror.rows("SELECT DISTINCT kind FROM event") == [("new",)]


# --- servers whose answers no profile explains ---------------------------------------------------


def extra_requests(site, visits):
    return len(site.asked) - len(visits)


@pytest.mark.parametrize("rule", [by_hour, by_count], ids=["by time of day", "by count"])
async def test_answers_that_no_profile_explains_cost_few_requests(
    a_site, mirror, visit_again, wall, rule
):
    # Each day in the middle of the next hour: those of odd numbers are German.
    wall.shift_s = 1.5 * HOUR_S - wall() % (2 * HOUR_S)
    site, web = await a_site(rule)
    running, *_ = await visit_again(site, web, rule, days=5, day_s=DAY_S + HOUR_S)
    await running.drain()
    visits = visits_of(mirror)
    # The last request may have been a trial whose page waits to be asked for again.
    assert extra_requests(site, visits) <= 2 * TRIALS + 0.02 * len(visits) + 1
    # Two forms come and go; the pages never changed.
    assert mirror.rows("SELECT max(change_count) FROM page") == [(1,)]
    assert mirror.rows("SELECT DISTINCT kind FROM event") == [("new",)]


async def test_a_refusal_of_the_form_is_an_unwanted_answer(a_site, mirror):
    def refuses(request):
        german = request.headers.get("accept-language") == "de"
        return GERMAN if german else FormAnswer("{}", status=406)

    site, web = await a_site(refuses)
    await mirror.run(web.url(), site=SITE)
    assert copies(mirror) == [("a", "german", True)] * (PAGES + 1)
    assert len(site.asked) <= PAGES + 1 + TRIALS
