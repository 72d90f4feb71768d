"""Plug-ins that do harm: the crawl goes on, and the operator is told who it was."""

import re

import pytest

from crawld.daemon.api.status_view import status_of
from crawld.errors import ConfigError
from tests.daemon.harness import until
from tests.daemon.plugins.page_site import WORDS, PageSite, page

FAST = {"host_delay_s": 0.005}
REVISITING = {"min_revisit_s": 0.0}


def site_of(count):
    names = [f"/{number}" for number in range(count)]
    return PageSite({"/": page(WORDS, *names), **{name: page(f"{WORDS} {name}") for name in names}})


@pytest.fixture
def crawl(serve, daemon):
    """Return a function that crawls some pages, and returns the daemon and its plug-in."""

    async def run(count=20, **more):
        site = site_of(count)
        web = await serve(site)
        running = await daemon(web.url(), politeness=FAST, **more)
        await until(lambda: len(site.asked) > count, what="the crawl")
        await running.drain()
        status = await status_of(running)
        return running, status.plugins[0], site

    return run


def stalled_by(capsys):
    """Return the plug-ins that held the event loop for a second, as the stall meter logs them."""
    lines = [line for line in capsys.readouterr().out.splitlines() if "loop_stalled" in line]
    return re.findall(r"plug-in \w+ \(\w+\)", "\n".join(lines))


async def stored(mirror):
    [(count,)] = mirror.rows("SELECT count(DISTINCT page_id) FROM version")
    return count


@pytest.mark.parametrize(
    "body", ["raise KeyError('x')", "import sys; sys.exit(3)", "return [] + reading"]
)
async def test_one_that_raises_is_disabled_after_some_failures(crawl, mirror, plugin, body):
    plugin("bad", f"@hookimpl\ndef read_response(reading):\n    {body}", max_failures=3)
    _, status, _ = await crawl()
    assert status.failures == 3
    assert status.disabled.startswith("3 failures, the last: read_response: ")
    assert status.hooks[0].calls == 3
    assert await stored(mirror) == 21


NONSENSE = {
    "prepare_request(request)": ["1", "'x'", "[]", "PageRequest(1)", "[request] * 17"],
    "read_response(reading)": ["True", "Verdict(changed='yes')", "Verdict(tags={'a': 1})"],
    "weigh_page(url)": ["-1.0", "float('nan')", "'much'", "True"],
    "admit_page(url)": ["''", "'x' * 201", "b'no'", "0"],
    "order_new_pages(urls)": ["[]", "[urls[0]] * len(urls)", "'abc'", "list(urls) + [1]"],
}


@pytest.mark.parametrize(("hook", "answer"), [(h, a) for h, each in NONSENSE.items() for a in each])
async def test_nonsense_is_refused_with_a_record(crawl, mirror, plugin, hook, answer):
    plugin("bad", f"@hookimpl\ndef {hook}:\n    return {answer}", max_failures=2)
    _, status, _ = await crawl(count=5)
    assert status.failures >= 1
    assert status.last_failure.startswith(hook.partition("(")[0])
    assert await stored(mirror) == 6
    assert mirror.rows("SELECT DISTINCT importance FROM page") == [(1.0,)]


async def test_one_that_hangs_on_the_event_loop_is_ended_and_named(crawl, mirror, plugin, capsys):
    plugin(
        "bad",
        """
        @hookimpl
        def weigh_page(url):
            while url.endswith("/3"):
                pass
        """,
    )
    _, status, _ = await crawl(count=5)
    assert status.disabled.startswith("weigh_page: did not end within")
    assert stalled_by(capsys) == ["plug-in bad (weigh_page)"]
    assert await stored(mirror) == 6


async def test_one_that_hangs_on_a_thread_is_abandoned(crawl, mirror, plugin):
    plugin(
        "bad",
        """
        import threading
        import time

        @hookimpl
        def read_response(reading):
            assert threading.current_thread() is not threading.main_thread()
            time.sleep(2.0)
        """,
        max_s=0.2,
    )
    _, status, _ = await crawl(count=5)
    assert status.disabled.startswith("read_response: did not end within 0.")
    assert await stored(mirror) == 6


async def test_one_that_blocks_the_loop_is_named_by_the_stall_meter(crawl, plugin, capsys):
    plugin(
        "bad",
        """
        import time

        @hookimpl
        def admit_page(url):
            if url.endswith("/3"):
                time.sleep(1.1)
        """,
    )
    _, status, _ = await crawl(count=5)
    assert stalled_by(capsys) == ["plug-in bad (admit_page)"]
    assert not status.disabled
    assert status.hooks[0].longest_s >= 1.1


async def test_one_that_computes_long_runs_off_the_loop(crawl, plugin):
    plugin(
        "slow",
        """
        import time

        @hookimpl
        def read_response(reading):
            time.sleep(0.03)
        """,
    )
    running, status, _ = await crawl(count=10)
    assert status.hooks[0].calls == 11
    assert "plug-in slow (" not in running.stall_meter.longest.by
    assert not status.failures


async def test_one_that_leaks_is_disabled(crawl, mirror, plugin):
    plugin(
        "bad",
        """
        kept = []

        @hookimpl
        def read_response(reading):
            kept.append(bytearray(b"x") * (8 << 20))
        """,
        max_memory_bytes=40 << 20,
    )
    _, status, _ = await crawl(count=20)
    assert "made the process grow by about" in status.disabled
    assert status.hooks[0].calls < 15
    assert await stored(mirror) == 21


async def test_of_two_that_fight_the_first_decides(serve, daemon, mirror, plugin):
    site = PageSite({"/": lambda request, n: page(f"{WORDS} edition {n}")})
    web = await serve(site)
    plugin("first", "@hookimpl\ndef read_response(reading):\n    return Verdict(changed=False)")
    plugin(
        "second",
        "@hookimpl\ndef read_response(reading):\n"
        "    return Verdict(changed=True, tags={'mine': 'x'}, links=['/b'])",
    )
    running = await daemon(web.url(), schedule=REVISITING, politeness=FAST)
    await until(lambda: len(site.asked) >= 5, what="revisits")
    await running.drain()
    assert mirror.rows("SELECT count(*) FROM version") == [(1,)]
    first, second = running.plugins.host.plugins
    assert first.overruled == 0
    assert second.overruled >= 3
    assert not first.failures_in_all + second.failures_in_all


OUTSIDE = {
    "another origin": 'request.url.replace("a.test", "b.test")',
    "robots.txt": 'request.url.replace("/1", "/secret")',
    "scope": 'request.url.replace("/1", "/excluded/1")',
    "not canonical": 'request.url + "#top"',
}


@pytest.mark.parametrize(("why", "url"), OUTSIDE.items())
async def test_a_request_out_of_scope_is_not_sent(serve, mirror, plugin, why, url):
    robots = "User-agent: *\nDisallow: /secret"
    pages = {"/": page(WORDS, "/1"), "/1": page(), "/secret": page(), "/excluded/1": page()}
    site, other = PageSite(pages, robots=robots), PageSite(pages, host="b.test")
    web = await serve(site, other)
    plugin(
        "bad",
        f"@hookimpl\ndef prepare_request(request):\n    return PageRequest({url})",
    )
    await mirror.run(web.url(), site={"exclude": ["glob:*/excluded/*"]})
    assert site.paths() == ["/", "/1"]
    assert not other.asked


@pytest.mark.parametrize(
    "headers", ['("User-Agent", "x")', '("Host", "b.test")', '("X", "a\\r\\nFrom: b")']
)
async def test_identity_and_framing_cannot_be_set(serve, mirror, plugin, headers):
    site = PageSite({"/": page()})
    web = await serve(site)
    plugin(
        "bad",
        f"@hookimpl\ndef prepare_request(request):\n"
        f"    return PageRequest(request.url, ({headers},))",
    )
    await mirror.run(web.url())
    [(_, headers)] = site.asked
    assert headers["user-agent"].startswith("crawld/")
    assert "from" not in headers


async def test_tags_of_a_removed_plugin_do_no_harm(serve, daemon, mirror, plugin):
    site = PageSite({"/": lambda request, n: page(f"{WORDS} edition {n}")})
    web = await serve(site)
    plugin("gone", "@hookimpl\ndef read_response(reading):\n    return Verdict(tags={'a': 'b'})")
    await mirror.run(web.url())
    assert mirror.rows("SELECT plugin, name, value FROM version_tag") == [("gone", "a", "b")]
    del mirror.tables["plugin"]
    running = await daemon(web.url(), schedule=REVISITING, politeness=FAST)
    await until(lambda: len(site.asked) >= 4, what="revisits")
    await running.drain()
    assert (await status_of(running)).plugins == []
    assert mirror.rows("SELECT count(*) FROM version")[0][0] >= 3


@pytest.mark.parametrize(
    ("head", "code", "why"),
    [
        ("from crawld.plugins import *\n", "x = 1", "states no CRAWLD_API"),
        ("CRAWLD_API = 99\n", "x = 1", "version 99 of the plug-in interface, this crawld has 1"),
        ("CRAWLD_API = 0\n", "x = 1", "version 0 of the plug-in interface"),
        ("", "import no_such_module_anywhere", "cannot be imported: ModuleNotFoundError"),
        ("", "def broken(:", "cannot be imported: SyntaxError"),
        ("", "raise SystemExit", "cannot be imported: SystemExit"),
    ],
)
async def test_one_that_cannot_be_used_is_refused_with_the_fix(mirror, plugin, head, code, why):
    plugin("bad", code, head=head)
    with pytest.raises(ConfigError, match=why) as caught:
        await mirror.run("http://a.test/")
    assert caught.value.hint
    assert not mirror.db.exists()
