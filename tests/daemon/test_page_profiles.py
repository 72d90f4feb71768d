"""Hosts that answer by language, device and type are asked for the form that is wanted."""

import json
from functools import partial

import pytest

from crawld.store.versions.body import decode
from tests.daemon.control_client import get
from tests.daemon.harness import until
from tests.daemon.http_server import listen, next_head

GERMAN = "Das ist die Seite {} über Flüsse, Häfen und Brücken, die es in dieser Gegend gibt."
ENGLISH = "This is the page {} about rivers, harbours and bridges that are found in this area."
PAGES = 12

PROFILES = [
    {"name": "plain"},
    {"name": "german", "accept_language": "de"},
    {"name": "phone", "user_agent_suffix": "Mobile"},
    {"name": "html", "accept": "text/html"},
]
SITE = {"profiles": PROFILES, "wanted": {"content_types": ["text/html"], "language": "de"}}


def html(text, path=""):
    links = "".join(f'<a href="/p{n}">{n}</a>' for n in range(PAGES)) if path == "/" else ""
    return f"<html><title>t</title><body><p>{text}</p>{links}</body></html>"


def by_language(asked, path):
    german = asked.get("accept-language", "").startswith("de")
    return "text/html", html((GERMAN if german else ENGLISH).format(path), path), "Accept-Language"


def by_device(asked, path):
    phone = asked["user-agent"].endswith("Mobile")
    return "text/html", html((GERMAN if phone else ENGLISH).format(path), path), None


def by_type(asked, path):
    if asked["accept"] == "text/html":
        return "text/html", html(GERMAN.format(path), path), "Accept"
    return "application/json", json.dumps({"page": path}), "Accept"


def never(asked, path):
    return "text/html", html(ENGLISH.format(path), path), "*"


class Server:
    """Answers each host by a rule; remembers (host, path, headers) of each request for a page."""

    def __init__(self, **rules):
        self.rules = rules
        self.requests = []

    async def serve(self, *, task_status):
        await listen(self, self.talk, task_status)

    async def talk(self, stream):
        async with stream:
            received = b""
            while (found := await next_head(stream, received)) is not None:
                head, received = found
                line, *fields = head.split("\r\n")
                asked = {k.lower(): v for k, v in (each.split(": ", 1) for each in fields)}
                await stream.send_all(self.answer(line.split(" ")[1], asked))

    def answer(self, path, asked):
        if path != "/" and not path.removeprefix("/p").isdigit():
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        host = asked["host"].split(".")[0]
        self.requests.append((host, path, asked))
        content_type, text, vary = self.rules[host](asked, path)
        body = text.encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        return (head + (f"Vary: {vary}\r\n" if vary else "") + "\r\n").encode() + body

    def url(self, host):
        return f"http://{host}.test:{self.port}/"


@pytest.fixture
def serve_hosts(nursery):
    async def start(**rules):
        server = Server(**rules)
        await nursery.start(lambda *, task_status: server.serve(task_status=task_status))
        return server

    return start


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


async def test_each_host_is_asked_in_the_way_that_brings_the_wanted_form(serve_hosts, mirror):
    server = await serve_hosts(a=by_language, b=by_device, c=by_type)
    await mirror.run(*map(server.url, "abc"), site=SITE)
    pages = PAGES + 1
    found = copies(mirror)
    assert {(host, profile) for host, profile, _ in found} == {
        *(("a", "german"), ("b", "phone"), ("c", "html"))
    }
    assert len(found) == 3 * pages
    assert all(german for *_, german in found)
    assert len(server.requests) <= 3 * (pages + len(PROFILES) - 1)
    # Whatever the profile, each request names crawld and the contact.
    for *_, asked in server.requests:
        assert asked["user-agent"].startswith("crawld/")
        assert "test@example.org" in asked["user-agent"]


async def test_a_host_that_never_shows_the_wanted_form_costs_little_and_is_stored(
    serve_hosts, mirror
):
    server = await serve_hosts(a=never)
    await mirror.run(server.url("a"), site=SITE)
    assert copies(mirror) == [("a", None, False)] * (PAGES + 1)
    assert len(server.requests) <= PAGES + 1 + len(PROFILES) - 1


@pytest.fixture
def visit_again(daemon, mirror, wall):
    """Return a function that changes the rule of a host and returns the visits after it."""

    async def visits_of(server, rule):
        running = await daemon(server.url("a"), site=SITE)
        await until(lambda: len(copies(mirror)) == PAGES + 1, what="all first copies")
        await running.crawl.recorder.drain()
        visits = partial(mirror.rows, "SELECT outcome, failure FROM visit ORDER BY visit_id")
        before, requests = len(visits()), len(server.requests)
        server.rules["a"] = rule
        wall.shift_s += 86_400.0
        await running.crawl.schedule.wake_all()
        await until(lambda: len(visits()) >= before + PAGES + 1, what="the next visits")
        return running, visits()[before:], server.requests[requests:]

    return visits_of


async def test_a_change_of_mind_is_found_within_a_visit_and_is_no_change(
    serve_hosts, mirror, visit_again
):
    server = await serve_hosts(a=by_language)
    running, _, requests = await visit_again(server, by_device)
    found = copies(mirror)
    assert all(german for *_, german in found)
    assert {profile for _, profile, _ in found} == {"german", "phone"}
    first = requests[0][1]
    tries = [path for _, path, _ in requests[: len(PROFILES)]]
    assert tries.count(first) <= len(PROFILES)
    # Another variant of the same page: a version, neither a change nor an event.
    assert mirror.rows("SELECT DISTINCT change_count FROM page") == [(1,)]
    assert mirror.rows("SELECT DISTINCT kind FROM event") == [("new",)]
    shown = (await get(running, "/hosts/a.test")).json()["profiles"]
    assert [(each["section"], each["profile"]) for each in shown] == [("", "phone")]
    assert shown[0]["trials"] <= 2 * (len(PROFILES) - 1)


async def test_a_copy_in_the_wanted_form_is_never_replaced_by_another(
    serve_hosts, mirror, visit_again
):
    server = await serve_hosts(a=by_language)
    _, visits, _ = await visit_again(server, never)
    assert set(visits) == {("failed", "unwanted_form")}
    assert copies(mirror) == [("a", "german", True)] * (PAGES + 1)


async def test_what_was_learnt_survives_a_restart(serve_hosts, mirror):
    server = await serve_hosts(a=by_device)
    await mirror.run(server.url("a"), site=SITE | {"max_pages": 1})
    requests = len(server.requests)
    await mirror.run(f"{server.url('a')}p1", site=SITE)
    assert {asked["user-agent"][-6:] for *_, asked in server.requests[requests:]} == {"Mobile"}
