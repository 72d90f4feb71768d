"""What a daemon does with the marks that another left."""

import gzip
import sqlite3
from contextlib import closing

import pytest

from crawld.core.content.quarantine import ANALYSER_VERSION
from crawld.daemon.freeze_watch import STALL_BEATS
from crawld.marks import MarksFile, Step, marks_path
from crawld.simweb.fault import status
from crawld.simweb.message import SimResponse, build_response
from tests.daemon.control_client import get, post
from tests.daemon.harness import make_site, until


def leave_mark(mirror, url, *, step=Step.ANALYSIS, beats=STALL_BEATS, version=ANALYSER_VERSION):
    """Leave the mark of a process that was killed, after so many beats of a step."""
    marks = MarksFile.open(marks_path(mirror.db))
    marks.begin(version)
    marks.under(url, step).__enter__()
    for _ in range(beats):
        marks.beat()


async def test_a_page_with_evidence_is_stored_without_links(serve, mirror):
    web = await serve(make_site(pages=5))
    leave_mark(mirror, web.url())
    await mirror.run(web.url())
    assert mirror.rows("SELECT url, held FROM quarantine") == [(web.url(), 1)]
    assert mirror.pages() == {"/": ("visited", "changed", None)}
    assert not marks_path(mirror.db).exists()


@pytest.fixture
async def held_start(serve, mirror):
    """A mirror of one page, whose second daemon finds it in quarantine; its web."""
    site = make_site(pages=5)
    web = await serve(site)
    await mirror.run(web.url(), site={"max_depth": 0})
    leave_mark(mirror, web.url())
    return web, site


async def test_a_held_page_keeps_its_body_and_gets_no_links(held_start, mirror, daemon):
    web, site = held_start
    body = b"<title>New</title><a href=/other>other</a>" + b"x" * 1000
    site.faults = {"/": lambda request, handler: build_response(request, 200, body)}
    await daemon(web.url(), schedule={"min_revisit_s": 0.0})
    await until(lambda: len(mirror.rows("SELECT 1 FROM version")) == 2)
    assert mirror.rows("SELECT title FROM page WHERE url = ?", web.url()) != [("New",)]
    assert "/other" not in mirror.pages()


async def test_a_step_too_short_for_evidence_makes_a_suspect(serve, mirror):
    web = await serve(make_site(pages=5))
    leave_mark(mirror, web.url(), beats=STALL_BEATS - 1)
    await mirror.run(web.url())
    assert mirror.rows("SELECT held FROM quarantine") == [(0,)]
    assert len(mirror.pages()) == 5
    await mirror.run(web.url())  # the last end was clean
    assert mirror.rows("SELECT held FROM quarantine") == []


async def test_marks_of_another_analyser_are_no_evidence(serve, mirror):
    web = await serve(make_site(pages=5))
    leave_mark(mirror, web.url(), version=ANALYSER_VERSION + 1)
    await mirror.run(web.url())
    assert mirror.rows("SELECT held FROM quarantine") == []
    assert len(mirror.pages()) == 5


async def test_another_analyser_reads_what_one_before_could_not(held_start, mirror):
    web, _ = held_start
    await mirror.run(web.url())
    with closing(sqlite3.connect(mirror.db)) as connection, connection:
        connection.execute("UPDATE quarantine SET analyser_version = ?", (ANALYSER_VERSION - 1,))
    await mirror.run(web.url())
    assert mirror.rows("SELECT held FROM quarantine") == []
    assert len(mirror.pages()) == 5


async def test_a_held_robots_txt_closes_its_origin_until_the_release(serve, mirror, daemon):
    web = await serve(make_site(pages=3))
    leave_mark(mirror, web.url("/robots.txt"))
    running = await daemon(web.url())
    await until(lambda: running.crawl.robots.closed_until(web.url("")) > 0)
    assert web.targets() == []
    assert running.quarantine.holds_document(web.url("/robots.txt"))


def answers_gzip(request, handler):
    """Answer with gzip, unless the request wants none."""
    body = b"<p>a page " + b"x" * 500
    if request.headers["accept-encoding"] == "identity":
        return build_response(request, 200, body)
    lines = "Content-Encoding: gzip\r\n"
    return build_response(request, 200, gzip.compress(body), extra=lines)


async def test_a_page_whose_decoding_is_held_is_asked_for_without_coding(serve, mirror, daemon):
    site = make_site(pages=1)
    web = await serve(site)
    await mirror.run(web.url())
    leave_mark(mirror, web.url(), step=Step.DECODING)
    site.faults = {"/": answers_gzip}
    await daemon(web.url(), schedule={"min_revisit_s": 0.0})
    await until(lambda: len(mirror.rows("SELECT 1 FROM version")) == 2)
    assert mirror.rows("SELECT step FROM quarantine") == [("decoding",)]


ETAG = 'ETag: "held"\r\n'


class LateSite:
    """Answers of the home page: each waits while `waits`; 304 to what has its ETag."""

    def __init__(self):
        self.waits = False
        self.conditional = []
        self.is_new = False

    def __call__(self, request, handler):
        condition = request.headers.get("if-none-match")
        self.conditional.append(condition is not None)
        if condition == '"held"' and not self.is_new:
            response = build_response(request, 304, extra=ETAG)
        else:
            body = b"<p>a page <a href=/other>other</a>" + b"new" * self.is_new
            response = build_response(request, 200, body, extra="" if self.is_new else ETAG)

        def steps():
            while self.waits:
                yield 0.005
            yield response.to_bytes()

        return SimResponse(response.status, steps())


@pytest.mark.parametrize("is_new", [False, True], ids=["not modified", "changed"])
async def test_a_visit_under_way_does_not_undo_a_release(serve, mirror, daemon, wall, is_new):
    late = LateSite()
    web = await serve(make_site(pages=1, faults={"/": late, "/robots.txt": status(404)}))
    await mirror.run(web.url(), site={"max_depth": 0})
    leave_mark(mirror, web.url())
    late.waits, late.is_new = True, is_new
    before = len(late.conditional)
    wall.shift_s = 3_600.0  # only the release can cause the visit after the next
    running = await daemon(web.url(), schedule={"min_revisit_s": 3_000.0})
    await until(lambda: len(late.conditional) > before, what="a visit under way")
    assert (await post(running, "/quarantine/release", url=web.url())).status_code == 200
    late.waits = False
    await until(lambda: "/other" in mirror.pages(), what="an analysis of the page")
    assert late.conditional[before : before + 2] == [True, False]


async def test_status_and_release_of_the_control_socket(held_start, mirror, daemon):
    web, _ = held_start
    running = await daemon(web.url())
    shown = (await get(running, "/status")).json()
    assert shown["quarantined"] == 1
    assert [each["url"] for each in shown["quarantined_pages"]] == [web.url()]
    listed = (await get(running, "/quarantine")).json()
    assert [(each["held"], each["step"]) for each in listed] == [(True, "analysis")]
    refused = await post(running, "/quarantine/release", url=web.url("/none"))
    assert refused.status_code == 404
    assert (await post(running, "/quarantine/release", url=web.url())).status_code == 200
    assert (await get(running, "/status")).json()["quarantined"] == 0
    await until(lambda: len(mirror.pages()) == 5)
