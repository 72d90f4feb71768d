"""Answers in an unwanted form: walls that pass, refusals, wrong labels."""

from collections import Counter

import pytest
import trio

from crawld.simweb.answer_forms import (
    DATA,
    ENGLISH,
    GERMAN,
    FormAnswer,
    FormSite,
    by_device,
    by_language,
    with_wall,
)
from tests.daemon.control_client import get
from tests.daemon.harness import until

PAGES = 8
PROFILES = [
    {"name": "plain"},
    {"name": "german", "accept_language": "de"},
    {"name": "phone", "user_agent_suffix": "Mobile"},
    {"name": "html", "accept": "text/html"},
]
SITE = {"profiles": PROFILES, "wanted": {"content_types": ["text/html"], "language": "de"}}
DAY_S = 86_400.0


class Host:
    """A host under a rule, its mirror, and the daemon that visits it."""

    def __init__(self, site, web, mirror, wall):
        self.site, self.web, self.mirror, self.wall = site, web, mirror, wall
        self.running = None

    def answer(self, rule):
        self.site.rules["a.test"] = rule

    def visits(self):
        return self.mirror.rows("SELECT page_id, outcome, failure FROM visit ORDER BY visit_id")

    async def pass_time(self, seconds):
        await self.running.crawl.recorder.drain()
        self.wall.shift_s += seconds
        await self.running.crawl.schedule.wake_all()

    async def visit_each(self, seconds=DAY_S, *, forgiven=False):
        """Let time pass until each page was visited once more.

        Args:
            forgiven: end each back-off of the host at once.
        """
        before = len(self.visits())
        await self.pass_time(seconds)
        state = self.running.crawl.state
        host = state.hosts["a.test"]

        def all_visited():
            if forgiven and host.backoff.level:
                host.forgive(trio.current_time())
                state.schedule.wake(host.slot)
            return len({page for page, *_ in self.visits()[before:]}) == PAGES + 1

        await until(all_visited, what="a visit of each page")
        await self.running.crawl.recorder.drain()
        return self.visits()[before:]

    def lacking(self):
        """Return how many pages lack a German copy as of their last visit."""
        [(count,)] = self.mirror.rows("SELECT count(*) FROM page WHERE last_failure IS NOT NULL")
        return count

    def rests_s(self):
        """Return the waits of pages whose last visit failed."""
        return [
            wait
            for (wait,) in self.mirror.rows(
                "SELECT retry_at - last_visit_at FROM page WHERE last_failure IS NOT NULL"
            )
        ]


@pytest.fixture
def mirrored(serve, mirror, wall, daemon):
    """Return a function that mirrors a host under a rule."""

    async def start(rule, keys=SITE):
        site = FormSite({"a.test": rule}, PAGES)
        web = await serve(site)
        host = Host(site, web, mirror, wall)
        paths = ("/", *(f"/p{number}" for number in range(PAGES)))
        host.running = await daemon(*map(web.url, paths), site=keys)
        await until(lambda: len(host.visits()) >= PAGES + 1, what="all first copies")
        await host.running.crawl.recorder.drain()
        return host

    return start


def wall_at_times(answer, of=9, shown=2):
    """Return a rule by language with a wall for some of each so many requests."""
    count = 0

    def rule(request):
        nonlocal count
        count += 1
        return answer if count % of < shown else by_language(request)

    return rule


SIGN_IN = FormAnswer("Please sign in to go on reading {}, since you reached your limit of pages.")
FORBIDDEN = FormAnswer(SIGN_IN.text, status=403)


@pytest.mark.parametrize("answer", [SIGN_IN, FORBIDDEN], ids=["200", "403"])
async def test_a_wall_that_passes_costs_minutes(mirrored, answer):
    host = await mirrored(by_language)
    host.answer(wall_at_times(answer))
    for _ in range(4):
        await host.visit_each()
    failed = [visit for visit in host.visits() if visit[1] != "changed" and visit[2]]
    assert {failure for *_, failure in failed} <= {"unwanted_form"}
    assert max(host.rests_s(), default=0.0) <= 600.0
    host.answer(by_language)
    for _ in range(2):
        await host.visit_each()
    assert host.lacking() == 0
    assert host.mirror.rows("SELECT max(change_count) FROM page") == [(1,)]
    assert host.mirror.rows("SELECT DISTINCT kind FROM event") == [("new",)]


async def test_a_wall_before_all_pages_is_a_state_of_the_host(mirrored):
    host = await mirrored(by_language)
    host.answer(with_wall(0))
    await host.pass_time(DAY_S)

    async def backs_off():
        return (await get(host.running, "/hosts/a.test")).json()["backoff_level"] > 0

    while not await backs_off():
        before = len(host.visits())
        await until(lambda: len(host.visits()) > before, what="another visit")  # noqa: B023
    [shown] = (await get(host.running, "/hosts/a.test")).json()["profiles"]
    # Those of the first search, and of one more.
    assert shown["trials"] <= 2 * (len(PROFILES) - 1)
    assert {failure for _, outcome, failure in host.visits() if failure} == {"unwanted_form"}
    assert max(host.rests_s()) <= 600.0


def data_or_english(request):
    """Answer with data, which is not stored, or in English if HTML alone is asked for."""
    return ENGLISH if request.headers.get("accept") == "text/html" else DATA


async def test_where_no_profile_fits_what_can_be_stored_is_stored(mirrored):
    host = await mirrored(data_or_english)
    for _ in range(5):
        await host.pass_time(DAY_S)
        await host.running.crawl.recorder.drain()
        if host.mirror.rows("SELECT count(*) FROM page WHERE version_id IS NULL") == [(0,)]:
            break
        before = len(host.visits())
        await until(lambda: len(host.visits()) > before + PAGES)  # noqa: B023
    assert host.mirror.rows("SELECT count(*) FROM page WHERE version_id IS NULL") == [(0,)]


FRENCH = FormAnswer("Voici la page {} sur les fleuves, les ports et les ponts de la région.")


def in_turn(*answers):
    """Return a rule that gives each page its answers in turn."""
    asked = Counter()

    def rule(request):
        asked[request.path] += 1
        # Not to all pages the same: that were a wall of the host.
        turn = asked[request.path] + sum(request.path.encode())
        return answers[turn % len(answers)]

    return rule


@pytest.mark.parametrize("profiles", [1, 4])
@pytest.mark.parametrize("answers", [(ENGLISH, GERMAN), (ENGLISH, FRENCH)])
async def test_languages_in_turn_are_versions_and_no_changes(mirrored, profiles, answers):
    host = await mirrored(in_turn(*answers), SITE | {"profiles": PROFILES[:profiles]})
    for _ in range(4):
        # All pages may come to the unwanted answer at once, which is a wall.
        await host.visit_each(forgiven=True)
    assert host.mirror.rows("SELECT max(change_count) FROM page") == [(1,)]
    assert host.mirror.rows("SELECT max(change_count) FROM host") == [(PAGES + 1,)]
    assert host.mirror.rows("SELECT DISTINCT kind FROM event") == [("new",)]
    changed = [page for page, outcome, _ in host.visits() if outcome == "changed"]
    assert len(changed) == len(set(changed)) == PAGES + 1
    twice = "SELECT 1 FROM version GROUP BY page_id, body_id HAVING count(*) > 1"
    assert host.mirror.rows(twice) == []


def without_language(request):
    """Refuse requests that want a language."""
    refused = "accept-language" in request.headers
    return FormAnswer("{}", status=406) if refused else GERMAN


def only_html(request):
    """Refuse requests that want another type than HTML."""
    wanted = request.headers.get("accept") == "text/html"
    return GERMAN if wanted else FormAnswer("{}", status=415)


async def test_after_refusals_another_profile_is_found_within_three_visits_without_trials(mirrored):
    host = await mirrored(by_language)
    for rule in (without_language, by_device, only_html, by_language):
        host.answer(rule)
        for _ in range(3):
            await host.visit_each()
        assert host.lacking() == 0, rule
    [shown] = (await get(host.running, "/hosts/a.test")).json()["profiles"]
    assert shown["profile"] == "german"
    assert shown["trials"] <= 2 * (len(PROFILES) - 1) + 1


async def test_types_are_told_by_the_content(mirrored):
    def mislabelled(request):
        wants = request.headers.get("accept") == "application/json"
        if wants:
            return FormAnswer("", DATA.content_type, label="text/html")
        return FormAnswer(ENGLISH.text, label="application/json")

    json_profile = {"name": "json", "accept": "application/json"}
    keys = {
        "profiles": [PROFILES[0], json_profile],
        "wanted": {"content_types": ["application/json"]},
        "content_types": ["text/html", "application/json"],
    }
    host = await mirrored(mislabelled, keys)
    found = host.mirror.rows("SELECT DISTINCT profile, content_type FROM version")
    assert found == [("json", "application/json")]
