"""The visit that a response makes of a page, and the record of it."""

import gc
from dataclasses import replace
from types import FunctionType

import pytest
import trio

from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.outcome import GONE_RETRY_S, RETIRED_RETRY_S
from crawld.core.page import GONE_GRACE_S, GONE_GRACE_VISITS, Failure, Grace, Outcome, PageState
from crawld.core.validators import Validators
from crawld.daemon.analyser import Analyser
from crawld.daemon.fetch.request import request_for
from crawld.daemon.frontier.admission import Admission
from crawld.daemon.visit.conclude import begin_visit, conclude
from crawld.daemon.visit.record import VisitFeedback, model_after, record_of
from crawld.daemon.visit.validators import UNCONDITIONAL, RequestMode
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.store.frontier.caps import NO_CAPS
from crawld.store.frontier.host import HostUpdate
from crawld.store.frontier.page import PageRecord
from crawld.store.versions.body import digest
from crawld.workers import THREADS
from tests.unit.daemon.site_values import make_site

NOW = 1_780_000_000.0
URL = "http://a.test/dir/page"
HTML = b"<!DOCTYPE html><title>T</title><p>text <a href='x'>x</a> <a href='/y'>y</a>"
OLD = b"<!DOCTYPE html><title>T</title><p>older text"


def make_page(**more):
    """Return the record of a visited page of depth 3, without a copy unless given."""
    fields = dict.fromkeys(PageRecord.__annotations__)
    known = {
        "page_id": 7,
        "site_id": 1,
        "host_id": 1,
        "origin": "http://a.test",
        "host": "a.test",
        "url": URL,
        "state": PageState.VISITED,
        "depth": 3,
        "seed": False,
        "importance": 1.0,
        "failure_count": 0,
        "change_streak": 0,
        "grace": Grace(),
    }
    return PageRecord(**{**fields, **known, **more})


HELD = {"digest": digest(OLD), "version_id": 5, "etag": '"old"', "last_modified": "yesterday"}


def response(status=200, body=HTML, headers=(), content_type="text/html; charset=utf-8"):
    lines = [*headers] if content_type is None else [("Content-Type", content_type), *headers]
    return FetchResponse(
        status=status,
        reason="",
        http_version="HTTP/1.1",
        headers=tuple((name.encode(), value.encode()) for name, value in lines),
        body=body,
        wire_bytes=len(body),
        address="192.0.2.1",
        sent_at=1.0,
        arrived_at=2.0,
        ended_at=2.0,
        duration_s=1.5,
    )


def fetch_failure(failure, **more):
    fields = {"detail": "why", "address": None, "sent_at": None, "at": 2.0}
    return FetchFailure(failure=failure, **{**fields, **more})


def conclude_visit(answer, page=None, *, mode=UNCONDITIONAL, max_links=10_000, **site):
    made = replace(make_site(seeds=["http://a.test/"], **site), max_links_per_page=max_links)
    analyser, admission = Analyser(THREADS), Admission(lambda origin: None)

    async def visit():
        begun = await begin_visit(
            page or make_page(), answer, mode=mode, comparison=None, analyser=analyser, now=NOW
        )
        if not begun.has_more:
            return begun
        return await conclude(begun, made, admission=admission, analyser=analyser)

    return trio.run(visit)


def admitted_urls(visit):
    return {each.url for each in visit.admitted.found}


CONDITIONAL = RequestMode(sent=Validators(etag='"old"'))

WITHOUT_NEW_COPY = {
    "same bytes": (response(body=OLD), UNCONDITIONAL, Outcome.UNCHANGED),
    "304": (response(304, b""), CONDITIONAL, Outcome.NOT_MODIFIED),
    "304 to an unconditional request": (response(304, b""), UNCONDITIONAL, Outcome.FAILED),
    "redirect": (
        response(301, b"", [("Location", "/elsewhere")]),
        UNCONDITIONAL,
        Outcome.MOVED,
    ),
    "404": (response(404), UNCONDITIONAL, Outcome.GONE),
    "410": (response(410), UNCONDITIONAL, Outcome.GONE),
    "403": (response(403), UNCONDITIONAL, Outcome.BLOCKED),
    "429": (response(429), UNCONDITIONAL, Outcome.BLOCKED),
    "503 with Retry-After": (
        response(503, HTML, [("Retry-After", "9")]),
        UNCONDITIONAL,
        Outcome.BLOCKED,
    ),
    "500": (response(500), UNCONDITIONAL, Outcome.FAILED),
    "an image": (
        response(200, b"\x89PNG\r\n\x1a\n" + bytes(99)),
        UNCONDITIONAL,
        Outcome.FAILED,
    ),
    "noarchive": (
        response(headers=[("X-Robots-Tag", "noarchive")]),
        UNCONDITIONAL,
        Outcome.BLOCKED,
    ),
    **{
        str(failure): (fetch_failure(failure), UNCONDITIONAL, Outcome.FAILED)
        for failure in (Failure.DNS, Failure.TIMEOUT, Failure.TRUNCATED, Failure.TOO_LARGE)
    },
}


@pytest.mark.parametrize("case", WITHOUT_NEW_COPY)
def test_only_a_good_new_copy_is_stored(case):
    answer, mode, outcome = WITHOUT_NEW_COPY[case]
    visit = conclude_visit(answer, make_page(**HELD), mode=mode)
    assert visit.judgement.outcome is outcome
    record = record_of(visit, VisitFeedback(), HostUpdate(), NO_CAPS)
    assert record.body is None
    assert record.outcome is not Outcome.CHANGED
    assert record.model is None or visit.judgement.good_copy


def test_a_new_copy_stores_body_title_links_and_validators():
    answer = response(headers=[("ETag", '"new"'), ("Last-Modified", "today"), ("X-More", "y")])
    visit = conclude_visit(answer, make_page(**HELD))
    record = record_of(visit, VisitFeedback(), HostUpdate(), NO_CAPS)
    assert (record.outcome, record.state, record.failure) == (
        Outcome.CHANGED,
        PageState.VISITED,
        None,
    )
    assert record.digest == record.body.digest == digest(HTML)
    assert (record.title, record.etag, record.last_modified) == ("T", '"new"', "today")
    assert (record.response.status, record.response.content_type) == (200, "text/html")
    assert admitted_urls(visit) == {"http://a.test/dir/x", "http://a.test/y"}
    assert {each.depth for each in record.discoveries} == {4}
    assert {each.referrer_id for each in record.discoveries} == {7}


@pytest.mark.parametrize(
    ("head", "headers", "found"),
    [
        ("", [], {"/dir/x", "/y"}),
        ("<meta name=robots content=nofollow>", [], set()),
        ("<meta name=robots content='NoIndex, NOFOLLOW'>", [], set()),
        ("<meta name=otherbot content=nofollow>", [], {"/dir/x", "/y"}),
        ("", [("X-Robots-Tag", "nofollow")], set()),
        ("", [("X-Robots-Tag", "otherbot: nofollow")], {"/dir/x", "/y"}),
        ("", [("X-Robots-Tag", "crawld: none")], set()),
        ("<base href='/other/'>", [], {"/other/x", "/y"}),
        ("<base href='http://b.test/'>", [], set()),
        ("<base href='http://['>", [], {"/dir/x", "/y"}),
        ("<meta name=robots content=noarchive>", [], {"/dir/x", "/y"}),
    ],
)
def test_nofollow_noarchive_and_base_are_respected(head, headers, found):
    visit = conclude_visit(
        response(body=HTML.replace(b"<title>", head.encode() + b"<title>"), headers=headers)
    )
    assert admitted_urls(visit) == {f"http://a.test{path}" for path in found}
    stored = "noarchive" not in head
    assert (visit.body is not None) == stored
    assert (visit.judgement.outcome is Outcome.CHANGED) == stored


def test_a_link_marked_nofollow_is_not_followed():
    body = b"<!DOCTYPE html><a href='x' rel='nofollow'>x</a><a href='/y'>y</a>"
    assert admitted_urls(conclude_visit(response(body=body))) == {"http://a.test/y"}


@pytest.mark.parametrize(
    ("location", "admitted"),
    [
        ("/elsewhere", {"http://a.test/elsewhere"}),
        ("http://a.test:81/p", {"http://a.test:81/p"}),
        ("http://b.test/", set()),
        ("http://www.a.test/", set()),
    ],
)
def test_the_target_of_a_redirect_has_the_depth_of_the_page(location, admitted):
    visit = conclude_visit(response(302, b"", [("Location", location)]))
    assert admitted_urls(visit) == admitted
    assert {each.depth for each in visit.admitted.found} <= {3}
    assert {each.reason for each in visit.admitted.refusals} == (set() if admitted else {"host"})


def test_only_a_seed_admits_a_redirect_to_another_host_of_its_domain():
    # registrable domain: example.org
    moved = response(301, b"", [("Location", "http://www.example.org/")])
    for seed, found in ((True, {"http://www.example.org/"}), (False, set())):
        page = make_page(url="http://example.org/", host="example.org", seed=seed, depth=0)
        assert admitted_urls(conclude_visit(moved, page, hosts=["example.org"])) == found


def test_redirects_out_of_scope_are_followed_if_the_site_permits_it():
    visit = conclude_visit(
        response(302, b"", [("Location", "http://b.test/")]), follow_redirects_out_of_scope=True
    )
    assert admitted_urls(visit) == {"http://b.test/"}


@pytest.mark.parametrize("location", ["", "http://", "javascript:alert(1)", "ftp://a.test/", URL])
def test_redirects_without_a_valid_target_fail(location):
    visit = conclude_visit(response(302, b"", [("Location", location)]))
    assert visit.judgement.failure is Failure.BAD_REDIRECT
    assert admitted_urls(visit) == set()


class TestRetryTime:
    def test_a_good_visit_has_no_retry_time(self):
        visit = conclude_visit(response(), make_page(failure_count=4))
        assert (visit.retry_at, visit.failure_count) == (None, 0)

    def test_each_failure_doubles_the_wait(self):
        waits = [
            conclude_visit(response(500), make_page(failure_count=count)).retry_at - NOW
            for count in range(3)
        ]
        assert waits == [60.0, 120.0, 240.0]

    def test_a_retry_after_is_the_minimum_wait(self):
        for text, wait_s in (("7200", 7200.0), ("1", 5.0), ("nonsense", 60.0)):
            visit = conclude_visit(response(503, b"", [("Retry-After", text)]))
            assert visit.retry_at == NOW + wait_s

    def test_a_requisite_that_was_there_is_looked_for_soon_and_then_seldom(self):
        lost = {"requisite": True, **HELD}
        first = conclude_visit(response(404), make_page(**lost))
        again = conclude_visit(response(404), make_page(**lost, grace=Grace(3, NOW - 500.0)))
        never = conclude_visit(response(404), make_page(requisite=True))
        waits = [visit.retry_at - NOW for visit in (first, again, never)]
        assert waits == [20.0, 1280.0, GONE_RETRY_S]

    def test_gone_pages_are_retried_daily_and_retired_ones_monthly(self):
        assert conclude_visit(response(404)).retry_at == NOW + GONE_RETRY_S
        nearly_over = Grace(GONE_GRACE_VISITS - 1, NOW - GONE_GRACE_S)
        visit = conclude_visit(response(404), make_page(grace=nearly_over))
        assert (visit.state, visit.retry_at) == (PageState.GONE, NOW + RETIRED_RETRY_S)

    def test_a_retired_page_that_returns_is_visited_again(self):
        visit = conclude_visit(
            response(), make_page(state=PageState.GONE, grace=Grace(9, NOW - 1e7))
        )
        assert (visit.state, visit.grace, visit.retry_at) == (PageState.VISITED, Grace(), None)


class TestRequest:
    @pytest.mark.parametrize(
        ("more", "receivers"),
        [
            ({}, {"https://a.test/x", "https://a.test:8443/x"}),
            (
                {"subdomains": True, "hosts": ["b.test"]},
                {"https://a.test/x", "https://a.test:8443/x"},
            ),
            (
                {"headers_origins": ["https://b.test"], "headers_over_http": True},
                {
                    "https://a.test/x",
                    "https://a.test:8443/x",
                    "http://c.test/x",
                    "https://b.test/x",
                },
            ),
        ],
    )
    def test_headers_of_a_site_are_sent_only_to_the_origins_they_were_given_for(
        self, tmp_path, more, receivers
    ):
        secret = tmp_path / "headers"
        secret.write_text("Authorization: Bearer s3cret\n")
        secret.chmod(0o600)
        seeds = ["https://a.test/", "https://a.test:8443/", "http://c.test/"]
        site = make_site(seeds=seeds, headers_file=str(secret), **more)
        urls = [
            *(
                "https://a.test/x",
                "http://a.test/x",
                "https://a.test:444/x",
                "https://a.test:8443/x",
            ),
            *("https://www.a.test/x", "https://b.test/x", "http://b.test/x", "http://c.test/x"),
            *("https://c.test/x", "https://a.test.b.test/x"),
        ]
        sent = {}
        for url in urls:
            page = make_page()._replace(url=url)
            request = request_for(page, site, Validators(), host="a.test", delay_s=1.0)
            sent[url] = request.headers
            assert "s3cret" not in repr((site, request)) + str(request) + f"{request.headers}"
        assert {url for url, headers in sent.items() if headers} == receivers
        ((name, value),) = sent["https://a.test/x"]
        assert (name, value.get_secret_value()) == ("Authorization", "Bearer s3cret")

    def test_validators_are_sent_as_given(self):
        site = make_site(seeds=["http://a.test/"])
        sent = Validators(etag='"e"', last_modified="today")
        request = request_for(make_page(), site, sent, host="a.test", delay_s=1.0)
        assert request.headers == (("If-None-Match", '"e"'), ("If-Modified-Since", "today"))
        assert not request.permits_private("a.test")

    @pytest.mark.parametrize(
        ("body", "content_type", "verdict"),
        [
            (HTML, "text/html", None),
            (HTML, "application/octet-stream", None),  # the body is sniffed
            (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", "text/html", Failure.WRONG_TYPE),
            (b"\x89PNG\r\n\x1a\n" + bytes(20), "text/html", Failure.WRONG_TYPE),
        ],
    )
    def test_unwanted_types_are_refused_early(self, body, content_type, verdict):
        site = make_site(seeds=["http://a.test/"])
        accept = request_for(make_page(), site, Validators(), host="a.test", delay_s=1.0).accept
        headers = ((b"Content-Type", content_type.encode()),)
        assert accept(200, headers, body) == verdict
        assert accept(404, headers, body) is None


def make_model(*, changed_at, until):
    """Return a change model whose changes are exactly known up to a time."""
    model = PageModel()
    model.observe_changes(changed_at, until)
    return model


@pytest.mark.parametrize(
    ("last_visit_at", "counted"),
    [(NOW - 10_000.0, 0), (NOW - 3_000.0, 1)],
    ids=["change in the history", "change after the history"],
)
def test_a_visit_does_not_count_a_change_of_the_history_again(last_visit_at, counted):
    known = make_model(changed_at=[NOW - 90_000.0, NOW - 5_000.0], until=NOW - 2_000.0)
    page = make_page(
        **HELD,
        last_visit_at=last_visit_at,
        model=known.to_bytes(),
        exact_until=NOW - 2_000.0,
    )
    after = model_after(conclude_visit(response(), page), None)
    assert after.changed == counted
    assert after.changed_visits == known.changed_visits + 1
    assert after.last_visit_at == NOW
    assert (after.last_change_at == NOW - 5_000.0) == (not counted)
    failed_since = page._replace(
        last_visit_at=NOW - 2_500.0, last_change_at=last_visit_at, failure_count=1
    )
    assert model_after(conclude_visit(response(), failed_since), None).changed == counted
    # Without a history the visit counts.
    without_history = model_after(conclude_visit(response(), page._replace(exact_until=None)), None)
    assert without_history.changed == 1


def test_a_history_read_during_a_visit_is_kept():
    # The visit began with the model that the previous one stored.
    before = PageModel()
    before.update(Observation(NOW - 60.0, True))
    page = make_page(**HELD, last_visit_at=NOW - 60.0, model=before.to_bytes())
    record = record_of(conclude_visit(response(), page), VisitFeedback(), HostUpdate(), NO_CAPS)
    assert record.model_before == page.model
    history_times = [NOW - 90_000.0, NOW - 5_000.0, NOW - 20.0]
    history = make_model(changed_at=history_times, until=NOW - 10.0)
    after = PageModel.from_bytes(record.remodel(history.to_bytes(), NOW - 10.0))
    assert (after.first_at, after.last_change_at) == (history_times[0], history_times[-1])
    assert (after.visits, after.changed, after.last_visit_at) == (history.visits + 1, 0, NOW)
    # A change that the history does not hold is counted.
    early = make_model(changed_at=history_times[:2], until=NOW - 70.0)
    after = PageModel.from_bytes(record.remodel(early.to_bytes(), NOW - 70.0))
    assert (after.first_at, after.changed) == (history_times[0], 1)


def test_no_source_misses_the_change_of_a_requisite():
    # A style that changed is no page that the recent changes of a wiki should have named.
    for requisite, judged in ((0, (4, 5)), (1, ())):
        page = make_page(**HELD, last_visit_at=NOW - 60.0, requisite=requisite)
        visit = conclude_visit(response(), page)
        record = record_of(visit, VisitFeedback(), HostUpdate(), NO_CAPS, (4, 5))
        assert record.hint_judgement.sources == judged
        assert record.hint_judgement.changed


def test_no_source_misses_the_change_of_a_renamed_page():
    # Its history came with it: no visit of this URL was before.
    renamed = make_page(**HELD, last_visit_at=NOW - 60.0, state=PageState.DISCOVERED)
    visit = conclude_visit(response(), renamed)
    assert record_of(visit, VisitFeedback(), HostUpdate(), NO_CAPS, (4,)).hint_judgement is None


@pytest.mark.parametrize("came_back", [False, True])
def test_no_source_misses_the_change_of_a_page_that_was_outside_of_its_part(came_back):
    page = make_page(**HELD, last_visit_at=NOW - 60.0, left_at=NOW - 30.0 if came_back else None)
    visit = conclude_visit(response(), page)
    record = record_of(visit, VisitFeedback(), HostUpdate(), NO_CAPS, (4,))
    assert record.hint_judgement.changed is (None if came_back else True)


def test_a_record_does_not_hold_the_parsed_page_in_memory():
    visit = conclude_visit(response(), make_page(**HELD))
    reachable, seen = [record_of(visit, VisitFeedback(), HostUpdate(), NO_CAPS)], set()
    while reachable:
        part = reachable.pop()
        if id(part) not in seen and not isinstance(part, (type, FunctionType)):
            seen.add(id(part))
            reachable += gc.get_referents(part)
    assert visit.content.page is not None
    assert id(visit.content.page) not in seen


def test_a_clock_set_back_hides_no_change():
    known = make_model(changed_at=[NOW - 90_000.0, NOW + 50_000.0], until=NOW + 60_000.0)
    page = make_page(
        **HELD, last_visit_at=NOW - 60.0, model=known.to_bytes(), exact_until=NOW - 80_000.0
    )
    assert model_after(conclude_visit(response(), page), None).changed == 1


@pytest.mark.parametrize(("most", "reasons"), [(2, {"max_links_per_page"}), (3, set())])
def test_a_page_with_more_links_than_are_read_is_reported(most, reasons):
    body = b"<a href=/1>1</a><a href=/2>2</a>" + b"<a href=/3>3</a>" * (most == 2)
    visit = conclude_visit(response(body=body), max_links=most)
    assert admitted_urls(visit) == {"http://a.test/1", "http://a.test/2"}
    assert {(each.host, each.reason) for each in visit.admitted.refusals} == {
        ("a.test", reason) for reason in reasons
    }
