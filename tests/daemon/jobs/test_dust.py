"""Duplicate URLs in a whole daemon: learnt, hidden, looked at again, withdrawn."""

import zlib

import pytest

from crawld.cli.dust import dust_table
from crawld.core.dust.rewrite import Rewrite, RewriteForm
from crawld.core.dust.rules import DustRule
from crawld.core.dust.trial import HOLDS_FROM
from crawld.core.url import target_of
from crawld.daemon.api.schemas.dust import DustList
from crawld.daemon.jobs.dust.job import DustJob
from crawld.daemon.jobs.dust.trials import LEAST_VALIDATION
from crawld.simweb.message import build_response
from crawld.simweb.page_text import make_sentence
from crawld.store.frontier import dust, dust_page
from crawld.store.frontier.dust_page import DustPageRow
from tests.daemon.control_client import control_client
from tests.daemon.harness import run_job, until, until_done

HOST = "a.test"
DAY_S = 86_400.0


class SessionWeb:
    """Articles under URLs with session ids, which mean nothing, and with tabs, which do.

    Attributes:
        sessions_count: whether the text depends on the session id.
        counted: articles of which it does in any case.
    """

    def __init__(self, articles=24, sessions=5, late=0):
        """Create the site; `late` articles, and most session ids beside them, are linked last."""
        self.hosts = (HOST,)
        self.sessions_count = False
        self.counted = frozenset()
        plain = [f"/article/{number}" for number in range(articles)]
        early = articles - late
        with_sessions = [
            f"{one}?zid={at:x}{number:04x}f"
            for at in range(sessions)
            for number, one in enumerate(plain)
        ]
        first = articles if late else len(with_sessions)
        self.links = [
            *plain[:early],
            *with_sessions[:first],
            *(f"{one}?tab={tab}" for one in plain for tab in "ab"),
            *with_sessions[first:],
            *plain[early:],
        ]

    def text_of(self, target):
        """Return what decides the text of a target."""
        plain = target.partition("?zid=")[0]
        return target if self.sessions_count or plain in self.counted else plain

    def handle(self, request):
        seed = zlib.crc32(self.text_of(request.target).encode())
        text = "".join(f"<p>{make_sentence(seed, at)}</p>" for at in range(4))
        links = self.links if request.target == "/" else ()
        text += "".join(f'<a href="{link}">more</a> ' for link in links)
        return build_response(request, 200, f"<html><body>{text}</body></html>".encode())


class PrintWeb(SessionWeb):
    """Articles with a menu, and their print views without it, which are linked last."""

    def __init__(self, articles=60):
        """Create the site."""
        super().__init__()
        views = ("article", "news", "print")
        self.links = [f"/{view}/{number}" for view in views for number in range(articles)]
        self.links.insert(0, f"/article/{articles}")  # the more frequent one stands

    def text_of(self, target):
        """Return what decides the text of a target."""
        return target.replace("/print/", "/article/")

    def handle(self, request):
        seed = zlib.crc32(self.text_of(request.target).encode())
        text = "".join(f"<p>{make_sentence(seed, at)}</p>" for at in range(4))
        if not request.target.startswith("/print/"):
            text = f"<p>{make_sentence(1, 1)}</p>{text}"
        links = self.links if request.target == "/" else ()
        text += "".join(f'<a href="{link}">more</a> ' for link in links)
        return build_response(request, 200, f"<html><body>{text}</body></html>".encode())


class VariantWeb(SessionWeb):
    """Articles of which few have variants; the first variants are linked last."""

    def __init__(self, articles=60):
        """Create the site."""
        super().__init__()
        plain = [f"/article/{number}" for number in range(articles)]
        self.links = [*plain, *(f"{one}?variant={at}" for at in (2, 1) for one in plain)]

    def text_of(self, target):
        """Return what decides the text of a target."""
        return target if target.startswith("/article/7?") else target.partition("?")[0]


class World:
    """A daemon on the site."""

    def __init__(self, site, web, running, mirror, wall):
        self.site, self.web, self.running = site, web, running
        self.mirror, self.wall = mirror, wall

    async def learn(self):
        """Run the job, and let what it asks for be visited."""
        await self.running.crawl.recorder.drain()
        ran = await run_job(self.running, "dust")
        assert ran.result == "done", ran.detail
        self.wall.shift_s += 300.0
        await self.running.crawl.schedule.wake_all()

    def rules(self, status="holds"):
        return self.mirror.rows(
            "SELECT form, name, value, section FROM dust_rule WHERE status = ?", status
        )

    def hidden(self):
        rows = self.mirror.rows(
            "SELECT url, canonical FROM page JOIN dust_page USING (page_id)"
            " WHERE state = 'suspended'"
        )
        return {target_of(url): canonical for url, canonical in rows}

    def equal(self):
        """Return the targets that were visited and compared."""
        rows = self.mirror.rows(
            "SELECT url FROM page JOIN dust_page USING (page_id) WHERE verdict = 'equal'"
        )
        return {target_of(url) for (url,) in rows}

    def visited(self):
        return self.mirror.rows("SELECT count(*) FROM visit")[0][0]

    def wrong(self):
        """Return hidden pages whose text is not that of the page that stands for them."""
        text_of = self.site.text_of
        return [one for one, other in self.hidden().items() if text_of(one) != text_of(other)]


@pytest.fixture
def world(serve, paused_daemon, mirror, wall, monkeypatch):
    # On a slow machine the daemon's own runs would come between the steps of a test: the first one
    # comes before any page, and no other.
    monkeypatch.setattr(DustJob, "every_s", 30 * DAY_S)

    async def start(shown=None, **tables):
        site = shown or SessionWeb()
        web = await serve(site, clock=wall)
        tables = {
            "jobs": {"audit_share": 0.0},
            "schedule": {"min_revisit_s": 30 * DAY_S},
            **tables,
        }
        running = await paused_daemon(web.url(host=HOST), **tables)
        first_run = "SELECT 1 FROM job WHERE name = 'dust' AND last_finished_at > 0"
        await until(lambda: mirror.rows(first_run), what="the daemon's own run")
        running.set_paused(paused=False)
        return World(site, web, running, mirror, wall)

    return start


async def test_duplicates_are_learnt_hidden_and_return_when_the_rule_is_wrong(world):
    w = await world()
    await until(lambda: w.visited() >= 120, what="the first pages")
    w.running.set_paused(paused=True)
    await w.learn()
    assert w.rules() == [("drop", "zid", "", "article")]
    # Those that were compared, and those that were not visited before the pause.
    assert len(w.hidden()) >= 20
    assert w.wrong() == []
    w.running.set_paused(paused=False)
    await until_done(w.running, 1.0)
    await w.learn()
    hidden = w.hidden()
    assert w.wrong() == []
    assert all("?zid=" in one for one in hidden)
    assert not hidden.keys() & set(w.web.targets(HOST)) - w.equal()
    assert len(w.running.state.admission.dust.of(w.web.url(host=HOST).rstrip("/")).rules) == 1

    w.site.sessions_count = True
    while w.rules():
        w.wall.shift_s += 7_200.0
        await w.learn()
        await until_done(w.running, 1.0)
    assert w.rules("withdrawn") == [("drop", "zid", "", "article")]
    await w.learn()
    assert w.hidden() == {}


async def test_a_rule_of_few_pairs_is_looked_at_before_its_first_hour_ends(world):
    w = await world()
    await until(lambda: w.visited() >= 60, what="pages enough for a trial, too few to be sure")
    w.running.set_paused(paused=True)
    await w.learn()
    assert w.rules() == [("drop", "zid", "", "article")]
    begun = w.running.clock.now()
    # The trial of so small a host takes all visits for validation.
    [(origin_id, asked)] = w.mirror.rows("SELECT origin_id, asked FROM dust_origin")
    await w.running.database.write(dust.count_asked, origin_id, -asked)
    w.site.sessions_count = True
    w.running.set_paused(paused=False)
    while w.rules() and w.running.clock.now() < begun + 3_000.0:
        await until_done(w.running, 1.0)
        await w.learn()
    assert w.rules("withdrawn") == [("drop", "zid", "", "article")]
    assert w.running.clock.now() < begun + 3_600.0
    [(asked,)] = w.mirror.rows("SELECT asked FROM dust_origin")
    assert 2 <= asked <= LEAST_VALIDATION


async def test_looks_do_not_pay_for_the_first_visits_of_the_pages_that_stand(world):
    w = await world(SessionWeb(articles=40, late=12))
    await until(lambda: w.visited() >= 75, what="pages enough for a trial")
    w.running.set_paused(paused=True)
    await w.learn()
    assert w.rules() == [("drop", "zid", "", "article")]
    [(origin_id, asked)] = w.mirror.rows("SELECT origin_id, asked FROM dust_origin")
    await w.running.database.write(dust.count_asked, origin_id, -asked)
    assert set(w.hidden().values()) - set(w.web.targets(HOST))
    await w.learn()
    looks = "SELECT count(*) FROM dust_page WHERE verdict = 'asked' AND tries = 1"
    assert w.mirror.rows(looks)[0][0] >= 5
    assert w.mirror.rows("SELECT asked FROM dust_origin")[0][0] <= LEAST_VALIDATION

    rows = w.mirror.rows(looks.replace("count(*)", "page_id"))
    urls = dict(w.mirror.rows("SELECT page_id, url FROM page"))
    looked_at = {target_of(urls[page_id]) for (page_id,) in rows}
    before = len(w.web.targets(HOST))
    w.running.set_paused(paused=False)
    await until(lambda: looked_at <= set(w.web.targets(HOST)), what="the looks")
    # Most others were found before most of them.
    last = max(w.web.targets(HOST).index(target) for target in looked_at)
    assert last < before + 50


async def test_the_first_look_is_where_another_value_of_the_parameter_differs(world):
    w = await world(VariantWeb())
    await until(lambda: w.visited() >= 75, what="articles, and some second variants")
    w.running.set_paused(paused=True)
    await w.running.crawl.recorder.drain()
    first, second = (
        DustRule(Rewrite(RewriteForm.VALUE, "variant", value), "article") for value in "12"
    )
    database, now = w.running.database, w.running.clock.now()
    [(origin_id,)] = w.mirror.rows("SELECT origin_id FROM origin")
    await database.write(dust.put_origin, origin_id, ["article"], 10_000, now)
    await database.write(dust.add_trials, origin_id, [first, second], now)
    rows = await database.read(dust.list_rules, origin_id)
    numbers = {row.rule: row.dust_rule_id for row in rows}
    await database.write(dust.put_evidence, numbers[first], 22, 0, HOLDS_FROM)
    await database.write(dust.set_status, numbers[first], "holds", now, now + DAY_S)
    await database.write(dust.set_status, numbers[second], "refused", now, 0.0)
    seen = await database.read(dust_page.seen_page, w.web.url("/article/7?variant=2", HOST))
    differs = (seen.page_id, seen.url, "/article/7", "differs", now, numbers[second], "", None, 0)
    await database.write(dust_page.put, origin_id, [DustPageRow(*differs)])
    await database.write(dust.count_asked, origin_id, LEAST_VALIDATION - 1)  # one visit is left
    await w.learn()
    looks = "SELECT url FROM dust_page JOIN page USING (page_id) WHERE verdict = 'asked'"
    assert len(w.hidden()) > 40
    assert [target_of(url) for (url,) in w.mirror.rows(looks)] == ["/article/7?variant=1"]
    w.running.set_paused(paused=False)
    await until_done(w.running, 1.0)
    await w.learn()
    assert "/article/7?variant=1" not in w.hidden()
    assert w.wrong() == []


async def test_a_small_host_gets_more_looks_as_its_pages_are_visited_again(world):
    w = await world()
    await until(lambda: w.visited() >= 60, what="pages enough for a trial, too few to be sure")
    w.running.set_paused(paused=True)
    await w.learn()
    assert w.rules() == [("drop", "zid", "", "article")]
    [(origin_id, asked)] = w.mirror.rows("SELECT origin_id, asked FROM dust_origin")
    left = LEAST_VALIDATION - asked
    await w.running.database.write(dust.count_asked, origin_id, left)
    looks = "SELECT count(*) FROM dust_page WHERE verdict = 'asked' AND tries = 1"
    [(before,)] = w.mirror.rows(looks)
    await w.learn()
    assert w.mirror.rows(looks) == [(before,)]
    more = 100 * (LEAST_VALIDATION + 20)
    await w.running.database.write(
        lambda connection: connection.execute("UPDATE host SET visit_count = ?", (more,))
    )
    await w.learn()
    assert before + 5 <= w.mirror.rows(looks)[0][0] <= before + 20


async def test_what_a_trial_asked_for_is_compared_without_the_menus_of_the_host(world):
    w = await world(PrintWeb())
    await until(lambda: w.visited() >= 75, what="articles, and no print view")
    w.running.set_paused(paused=True)
    await w.learn()
    assert ("replace", "print", "article", "article") in w.rules("trial")
    assert w.mirror.rows("SELECT count(*) FROM dust_page WHERE verdict = 'asked'") != [(0,)]
    w.running.set_paused(paused=False)
    await until_done(w.running, 1.0)
    await w.learn()
    # The first pair was compared before any other pair told which blocks are a menu.
    assert w.rules() == [("replace", "print", "article", "article")]


async def test_a_site_that_wants_no_rules_has_none(world):
    w = await world(site={"dust": False})
    await until_done(w.running, 1.0)
    await w.learn()
    assert w.rules() == []
    assert w.rules("trial") == []


async def test_the_operator_revokes_and_confirms_a_rule(world):
    w = await world()
    await until(lambda: w.visited() >= 120, what="the first pages")
    w.running.set_paused(paused=True)
    await w.learn()
    async with control_client(w.running) as control:
        listed = (await control.get("/dust")).json()
        [rule] = [each for each in listed["rules"] if each["applies"]]
        assert rule["text"] == "the parameter zid is irrelevant"
        assert sum(listed["hidden"].values()) == len(w.hidden())
        shown = dust_table(DustList.model_validate(listed), w.running.clock.now())
        assert shown is not None
        # A URL that nobody has named is no page: admission would replace it.
        url = w.web.url("/article/3?zid=fresh", HOST)
        why = (await control.get("/why", params={"url": url})).json()
        assert why["causes"][0]["cause"] == "duplicate"
        assert w.web.url("/article/3", HOST) in why["causes"][0]["text"]

        await control.post("/dust/revoke", json={"number": rule["number"]})
        await w.learn()
        assert w.hidden() == {}
        why = (await control.get("/why", params={"url": url})).json()
        assert why["causes"][0]["cause"] != "duplicate"
        done = await control.post("/dust/confirm", json={"number": rule["number"]})
        assert "the parameter zid is irrelevant" in done.json()["done"]
        await w.learn()
        assert w.hidden()
        assert (await control.post("/dust/forget", json={"number": 999})).status_code == 404


async def test_pages_that_were_visited_anyway_withdraw_a_rule_that_is_wrong_for_few(world):
    w = await world()
    w.site.counted = {f"/article/{number}" for number in (2, 7, 12, 17)}
    await until(lambda: w.visited() >= 120, what="the first pages")
    w.running.set_paused(paused=True)
    await w.running.crawl.recorder.drain()
    rule = DustRule(Rewrite(RewriteForm.DROP, "zid"), "article")
    database, now = w.running.database, w.running.clock.now()
    [(origin_id,)] = w.mirror.rows("SELECT origin_id FROM origin")
    await database.write(dust.put_origin, origin_id, ["article"], 10_000, now)
    await database.write(dust.add_trials, origin_id, [rule], now)
    [row] = await database.read(dust.list_rules, origin_id)
    await database.write(dust.put_evidence, row.dust_rule_id, 22, 0, HOLDS_FROM)
    await database.write(dust.set_status, row.dust_rule_id, "holds", now, now + DAY_S)
    visited = w.visited()
    await w.learn()
    assert w.rules("withdrawn") == [("drop", "zid", "", "article")]
    assert w.visited() == visited
    assert w.hidden() == {}
