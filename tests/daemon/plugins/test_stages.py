"""Plug-ins in the daemon: what each stage can do, and that the crawl's own rules decide last."""

from typer.testing import CliRunner

from crawld.cli.main import app
from crawld.daemon.api.why import why_of
from crawld.plugin_host.guarded_policy import GuardedPolicy
from tests.daemon.harness import run_job, until
from tests.daemon.plugins.page_site import WORDS, PageSite, page

REVISITING = {"min_revisit_s": 0.0}
FAST = {"host_delay_s": 0.005}


async def test_a_request_is_changed_and_the_robot_keeps_its_name(serve, mirror, plugin):
    site = PageSite({"/": page(WORDS, "/a"), "/a": page()})
    web = await serve(site)
    plugin(
        "norwegian",
        """
        @hookimpl
        def prepare_request(page, request):
            request = request.with_header("Accept-Language", "nb")
            return PageRequest(request.url, request.headers, agent_suffix="nb-reader/1")
        """,
    )
    await mirror.run(web.url())
    assert site.paths() == ["/", "/a"]
    for _, headers in site.asked:
        assert headers["accept-language"] == "nb"
        assert headers["user-agent"].startswith("crawld/")
        assert headers["user-agent"].endswith("(+test@example.org) nb-reader/1")


async def test_a_request_without_conditions_is_a_full_visit(serve, daemon, mirror, plugin):
    site = PageSite({"/": page()})
    web = await serve(site)
    plugin(
        "always",
        """
        from dataclasses import replace

        @hookimpl
        def prepare_request(request):
            return replace(request, conditional=False)
        """,
    )
    await daemon(web.url(), schedule=REVISITING, politeness=FAST)
    await until(lambda: len(site.asked) >= 4, what="revisits")
    assert not any("if-none-match" in headers for _, headers in site.asked)


async def test_a_digest_decides_that_noise_is_no_change(serve, daemon, mirror, plugin):
    noisy = page(WORDS) + "<!-- -->"
    site = PageSite({"/": lambda request, n: noisy.replace("word7 ", f"word{n} other{n} ")})
    web = await serve(site)
    plugin(
        "ends",
        """
        @hookimpl
        def read_response(reading):
            return Verdict(digest=reading.text.encode()[-20:], tags={"n": "1"})
        """,
    )
    running = await daemon(web.url(), schedule=REVISITING, politeness=FAST)
    await until(lambda: len(site.asked) >= 6, what="revisits")
    await running.drain()
    assert mirror.rows("SELECT count(*) FROM version") == [(1,)]
    details = {detail for (detail,) in mirror.rows("SELECT detail FROM visit WHERE visit_id > 1")}
    assert details == {"plug-in ends: nothing that matters changed"}


async def test_a_plugin_sees_the_copy_held_and_its_tags(serve, daemon, mirror, plugin):
    site = PageSite({"/": lambda request, n: page(f"{WORDS} edition {n}")})
    web = await serve(site)
    plugin(
        "counting",
        """
        @hookimpl
        def read_response(reading):
            before = reading.previous
            if before is None:
                return Verdict(tags={"number": "1"})
            assert b"edition" in before.body and before.content_type.startswith("text/html")
            assert reading.changed and reading.difference > 0
            return Verdict(tags={"number": str(int(before.tags["number"]) + 1)})
        """,
    )
    running = await daemon(web.url(), schedule=REVISITING, politeness=FAST)
    await until(lambda: len(site.asked) >= 4, what="revisits")
    await running.drain()
    kept = [int(v) for (v,) in mirror.rows("SELECT value FROM version_tag ORDER BY version_id")]
    assert kept[:4] == [1, 2, 3, 4]
    assert running.plugins.host.plugins[0].failures_in_all == 0


async def test_a_veto_keeps_the_copy_held(serve, daemon, mirror, plugin):
    site = PageSite({"/": lambda request, n: page("please log in" if n else WORDS)})
    web = await serve(site)
    plugin(
        "walls",
        """
        @hookimpl
        def read_response(reading):
            return Verdict(store="log in" not in reading.text, why="a login form")
        """,
    )
    running = await daemon(web.url(), schedule=REVISITING, politeness=FAST)
    await until(lambda: len(site.asked) >= 2, what="a revisit")
    await running.drain()
    rows = mirror.rows("SELECT outcome, failure, detail FROM visit ORDER BY visit_id")
    assert rows[0][0] == "changed"
    assert rows[1] == ("blocked", "plugin", "plug-in walls: a login form")
    assert mirror.rows("SELECT count(*) FROM version") == [(1,)]


async def test_links_of_a_plugin_are_admitted_by_the_scope_alone(serve, mirror, plugin):
    robots = "User-agent: *\nDisallow: /secret"
    pages = {"/": page(WORDS, "/own"), "/a": page(), "/secret": page(), "/own": page()}
    site = PageSite(pages, robots=robots)
    web = await serve(site)
    plugin(
        "links",
        """
        @hookimpl
        def read_response(reading):
            if reading.page.depth == 0:
                return Verdict(links=["/a", "https://elsewhere.example/", "/secret", "mailto:x"])
        """,
    )
    await mirror.run(web.url())
    assert site.paths() == ["/", "/a"]
    assert mirror.refusals() == {"host": 1, "robots": 1}


async def test_the_queue_stage_weighs_admits_orders_and_adds(serve, daemon, mirror, plugin):
    names = [f"/{number}" for number in range(9)]
    pages = {"/": page(WORDS, *names, "/no"), **{name: page() for name in names}}
    site = PageSite(pages | {"/added": page(), "/no": page()})
    web = await serve(site)
    plugin(
        "queue",
        f"""
        @hookimpl
        def weigh_page(url):
            return 5.0 if url.endswith("/8") else None

        @hookimpl
        def admit_page(url):
            return not url.endswith("/no")

        @hookimpl
        def order_new_pages(urls):
            return sorted(urls, reverse=True)

        @hookimpl
        def find_pages(site):
            yield "{web.url("/added")}"
            yield "https://elsewhere.example/"
        """,
    )
    running = await daemon(web.url(), politeness=FAST)
    await until(lambda: len(site.asked) >= 10, what="the crawl")
    await run_job(running, "plugin_pages")
    await until(lambda: "/added" in site.paths(), what="the added page")
    await running.drain()
    own = [path for path in site.paths() if path[1:].isdigit()]
    assert own[:9] == sorted(names, reverse=True)
    assert "/no" not in site.paths()
    assert mirror.refusals()["plugin"] == 1
    weights = dict(mirror.rows("SELECT url, importance FROM page"))
    assert weights[web.url("/8")] == 5.0
    assert weights[web.url("/7")] == 1.0


async def test_known_pages_are_weighed_again_by_a_new_plugin(serve, daemon, mirror, plugin):
    site = PageSite({"/": page(WORDS, "/a"), "/a": page()})
    web = await serve(site)
    await mirror.run(web.url())
    plugin("heavy", "@hookimpl\ndef weigh_page(url):\n    return 3.0")
    await daemon(web.url())
    weights = "SELECT DISTINCT importance FROM page"
    await until(lambda: mirror.rows(weights) == [(3.0,)], what="the new weights")


async def test_a_policy_of_a_plugin_orders_the_revisits(serve, daemon, mirror, plugin):
    site = PageSite({"/": page(WORDS, "/a", "/b"), "/a": page(), "/b": page()})
    web = await serve(site)
    plugin(
        "orders",
        """
        class Favourite(OrderedPolicy):
            def key_after(self, page, now, observation):
                assert observation.model is not None
                return now

        @hookimpl
        def policies():
            return {"favourite": Favourite}
        """,
    )
    schedule = {"policy": "orders:favourite", **REVISITING}
    running = await daemon(web.url(), schedule=schedule, politeness=FAST)
    await until(lambda: len(site.asked) >= 12, what="revisits")
    [queue] = running.state.hosts["a.test"].pages.values()
    assert isinstance(queue.policy, GuardedPolicy)
    assert running.plugins.host.plugins[0].failures_in_all == 0
    assert {"/", "/a", "/b"} == set(site.paths()[-6:])


async def test_a_plugin_is_asked_about_its_sites_only(serve, mirror, plugin):
    site = PageSite({"/": page()})
    web = await serve(site)
    plugin("other", "@hookimpl\ndef weigh_page(url):\n    return 3.0", sites=["s2"])
    await mirror.run(web.url())
    assert mirror.rows("SELECT importance FROM page") == [(1.0,)]


async def test_an_estimator_of_a_plugin_allocates(serve, daemon, mirror, plugin):
    site = PageSite({"/": page(WORDS, "/a"), "/a": page()})
    web = await serve(site)
    plugin(
        "rates",
        """
        seen = []

        @hookimpl
        def estimators():
            return {"constant": lambda model: seen.append(model.visits) or 1e-4}
        """,
    )
    schedule = {"policy": "merge", "estimator": "rates:constant", **REVISITING}
    running = await daemon(web.url(), schedule=schedule, politeness=FAST)
    await until(
        lambda: mirror.rows("SELECT count(*) FROM page WHERE visit_count > 1") == [(2,)],
        what="two visits of both pages",
    )
    await run_job(running, "allocate")
    [plugin_in_use] = running.plugins.host.plugins
    assert plugin_in_use.hooks["estimators constant"].calls >= 2


async def test_a_difference_of_a_plugin_measures(serve, daemon, mirror, plugin):
    site = PageSite({"/": lambda request, n: page(f"{WORDS} edition {n}")})
    web = await serve(site)
    plugin("half", "@hookimpl\ndef differences():\n    return {'always': lambda a, b: 0.5}")
    running = await daemon(
        web.url(), site={"difference": "half:always"}, schedule=REVISITING, politeness=FAST
    )
    await until(lambda: len(site.asked) >= 4, what="revisits")
    await running.drain()
    assert mirror.rows("SELECT DISTINCT difference FROM visit WHERE visit_id > 1") == [(0.5,)]


async def test_a_notifier_of_a_plugin_delivers(serve, daemon, mirror, plugin, tmp_path):
    out = tmp_path / "told"
    secret = tmp_path / "secret"
    secret.write_text("token-1\n")
    secret.chmod(0o600)
    plugin(
        "tells",
        f"""
        @hookimpl
        def notifiers():
            return {{"file": deliver}}

        def deliver(message):
            assert message.target == "token-1"
            with open("{out}", "a") as file:
                print(message.subject, message.events[0].kind, file=file)
            return ""
        """,
    )
    rule = {"name": "team", "notifier": "tells:file", "notifier_file": str(secret)}
    rule["kinds"] = ["new", "changed"]
    site = PageSite({"/": lambda request, n: page(f"{WORDS} edition {n}")})
    web = await serve(site)
    await daemon(web.url(), notify=[rule], schedule=REVISITING, politeness=FAST)
    await until(lambda: out.exists() and "changed" in out.read_text(), what="a message")
    assert "[s] Changed: t" in out.read_text()


async def test_pages_are_exported_by_a_plugin(serve, mirror, plugin, tmp_path):
    site = PageSite({"/": page(WORDS, "/a"), "/a": page()})
    web = await serve(site)
    path = plugin(
        "out",
        """
        @hookimpl
        def read_response(reading):
            return Verdict(tags={"words": str(len(reading.text.split()))})

        @hookimpl
        def exporters():
            broken = lambda pages, out: 1 / 0
            return {"list": write, "broken": broken, "odd": lambda pages, out: "x"}

        def write(pages, out):
            lines = []
            for page in pages:
                lines.append(f"{page.url} {page.tags['out.words']} {len(page.text.split())}")
            out.write_text("\\n".join(lines))
            return len(lines)
        """,
    )
    await mirror.run(web.url())
    config = tmp_path / "crawld.toml"
    config.write_text(f'[daemon]\nplugins_dir = "{path.parent}"\n[[plugin]]\nname = "out"\n')

    def export(form, code):
        words = ["export", form, "--db", str(mirror.db), "--out", str(tmp_path / "list")]
        result = CliRunner().invoke(app, [*words, "-c", str(config)])
        assert result.exit_code == code, result.output
        return result.output

    assert "2 pages" in export("out:list", 0)
    lines = (tmp_path / "list").read_text().splitlines()
    assert len(lines) == 2
    for line in lines:
        _, kept, now = line.split()
        assert kept == now
    assert "out:broken failed: ZeroDivisionError" in export("out:broken", 2)
    assert "how many pages it took" in export("out:odd", 2)
    assert 'no export format "out:none"' in export("out:none", 2)


async def test_why_names_the_plugin_that_refuses_a_url(serve, daemon, plugin):
    site = PageSite({"/": page(WORDS, "/old", "/new"), "/old": page(), "/new": page()})
    web = await serve(site)
    plugin("other", "@hookimpl\ndef admit_page(url):\n    return True")
    plugin(
        "picky",
        """
        @hookimpl
        def admit_page(url):
            if url.endswith("/old"):
                return "too old to be worth it"
            return not url.endswith("/odd")
        """,
    )
    running = await daemon(web.url())
    await until(lambda: "/new" in site.paths(), what="the crawl")
    refused = await why_of(running, web.url("/old"))
    assert refused.causes[0].cause == "plugin"
    assert "The plug-in picky refuses it: too old to be worth it." in refused.answer
    silent = await why_of(running, web.url("/odd"))
    assert "The plug-in picky refuses it, and gives no reason." in silent.answer
    assert "[[plugin]] block" in silent.causes[0].remedy
    assert "/old" not in site.paths()
