"""A server redirects a URL to itself plus a session id or a tracking parameter."""

import itertools

import pytest

from crawld.simweb.message import build_response
from tests.daemon.harness import until

HOST = "a.test"
TEXT = b"<html><body><p>A page that shows enough words to be taken for a text.</p></body></html>"


class SpellingWeb:
    """Answers a page under a URL with one more parameter only."""

    def __init__(self, wanted, *, robots="", endless=False):
        self.hosts = (HOST,)
        self.wanted, self.robots, self.endless = wanted, robots, endless
        self.sessions = itertools.count()
        self.asked = []

    def handle(self, request):
        if request.target == "/robots.txt":
            return build_response(request, 200, self.robots.encode(), content_type="text/plain")
        self.asked.append(request.target)
        if request.target == "/":
            return build_response(
                request, 200, b'<html><body><a href="/a?id=3">a</a></body></html>'
            )
        if self.wanted in request.target and not self.endless:
            return build_response(request, 200, TEXT)
        value = f"{next(self.sessions):016x}"
        location = f"Location: /a?id=3&{self.wanted}={value}\r\n"
        return build_response(request, 302, b"", extra=location)


@pytest.fixture
def start(serve, daemon, mirror, wall):
    async def run(site):
        web = await serve(site, clock=wall)
        running = await daemon(web.url(host=HOST), jobs={"audit_share": 0.0})
        done = "SELECT 1 FROM page WHERE url LIKE '%/a?%' AND visit_count > 0"
        await until(lambda: mirror.rows(done), what="the visit")
        return running, web

    return run


def outcome(mirror, web):
    [row] = mirror.rows(
        "SELECT last_outcome, visit_count, version_id IS NOT NULL FROM page WHERE url = ?",
        web.url("/a?id=3", HOST),
    )
    return row


@pytest.mark.parametrize("wanted", ["sid", "utm_source", "PHPSESSID"])
async def test_the_page_is_fetched_as_its_server_wants_and_keeps_its_url(start, mirror, wanted):
    site = SpellingWeb(wanted)
    _, web = await start(site)
    assert outcome(mirror, web) == ("changed", 1, True)
    assert mirror.rows("SELECT count(*) FROM page WHERE url LIKE '%/a?%'") == [(1,)]
    assert [one for one in site.asked if one != "/"] == ["/a?id=3", f"/a?id=3&{wanted}={0:016x}"]


async def test_a_server_that_always_redirects_fails_after_two_requests(start, mirror):
    site = SpellingWeb("sid", endless=True)
    _, web = await start(site)
    assert outcome(mirror, web) == ("failed", 1, False)
    assert len([one for one in site.asked if one != "/"]) == 2
    [(detail,)] = mirror.rows("SELECT last_failure FROM page WHERE url LIKE '%/a?%'")
    assert detail == "bad_redirect"


async def test_a_spelling_that_robots_forbid_is_not_asked_for(start, mirror):
    site = SpellingWeb("sid", robots="User-agent: *\nDisallow: /*sid=\n")
    _, web = await start(site)
    assert outcome(mirror, web) == ("failed", 1, False)
    assert [one for one in site.asked if one != "/"] == ["/a?id=3"]
