"""What an answer means for a page, and what of it reaches the file."""

import gc
from types import FunctionType

import pytest

from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.outcome import GONE_RETRY_S, RETIRED_RETRY_S
from crawld.core.page import GONE_GRACE_S, GONE_GRACE_VISITS, Failure, Grace, Outcome, PageState
from crawld.core.validators import Validators
from crawld.daemon.fetch.request import request_for
from crawld.daemon.frontier.admission import Admission
from crawld.daemon.visit.conclude import conclude
from crawld.daemon.visit.record import VisitFeedback, model_after, record_of
from crawld.daemon.visit.validators import UNCONDITIONAL, RequestMode
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.store.frontier.frontier import NO_CAPS
from crawld.store.frontier.host import HostUpdate
from crawld.store.frontier.page import PageRecord
from crawld.store.versions.body import digest
from tests.unit.daemon.site_values import make_site

NOW = 1_780_000_000.0
URL = "http://a.test/dir/page"
HTML = b"<!DOCTYPE html><title>T</title><p>text <a href='x'>x</a> <a href='/y'>y</a>"
OLD = b"<!DOCTYPE html><title>T</title><p>older text"


def page_of(**more):
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


def fetched(status=200, body=HTML, headers=(), content_type="text/html; charset=utf-8"):
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
        answered_at=2.0,
        duration_s=1.5,
    )


def failed(failure, **more):
    fields = {"detail": "why", "address": None, "sent_at": None, "at": 2.0}
    return FetchFailure(failure=failure, **{**fields, **more})


def visit_of(answer, page=None, *, mode=UNCONDITIONAL, **site):
    return conclude(
        page or page_of(),
        make_site(seeds=["http://a.test/"], **site),
        answer,
        mode=mode,
        comparison=None,
        admission=Admission(lambda origin: None),
        now=NOW,
    )


def found_in(visit):
    return {each.url for each in visit.admitted.found}


CONDITIONAL = RequestMode(sent=Validators(etag='"old"'))

NO_NEW_COPY = {
    "same bytes": (fetched(body=OLD), UNCONDITIONAL, Outcome.UNCHANGED),
    "304": (fetched(304, b""), CONDITIONAL, Outcome.NOT_MODIFIED),
    "304 not asked for": (fetched(304, b""), UNCONDITIONAL, Outcome.FAILED),
    "redirect": (
        fetched(301, b"", [("Location", "/elsewhere")]),
        UNCONDITIONAL,
        Outcome.MOVED,
    ),
    "404": (fetched(404), UNCONDITIONAL, Outcome.GONE),
    "410": (fetched(410), UNCONDITIONAL, Outcome.GONE),
    "403": (fetched(403), UNCONDITIONAL, Outcome.BLOCKED),
    "429": (fetched(429), UNCONDITIONAL, Outcome.BLOCKED),
    "503 with a time": (fetched(503, HTML, [("Retry-After", "9")]), UNCONDITIONAL, Outcome.BLOCKED),
    "500": (fetched(500), UNCONDITIONAL, Outcome.FAILED),
    "an image": (
        fetched(200, b"\x89PNG\r\n\x1a\n" + bytes(99)),
        UNCONDITIONAL,
        Outcome.FAILED,
    ),
    "noarchive": (fetched(headers=[("X-Robots-Tag", "noarchive")]), UNCONDITIONAL, Outcome.BLOCKED),
    **{
        str(failure): (failed(failure), UNCONDITIONAL, Outcome.FAILED)
        for failure in (Failure.DNS, Failure.TIMEOUT, Failure.TRUNCATED, Failure.TOO_LARGE)
    },
}


@pytest.mark.parametrize("what", NO_NEW_COPY)
def test_only_a_good_new_copy_reaches_the_file(what):
    answer, mode, outcome = NO_NEW_COPY[what]
    visit = visit_of(answer, page_of(**HELD), mode=mode)
    assert visit.judgement.outcome is outcome
    record = record_of(visit, VisitFeedback(), HostUpdate(), NO_CAPS)
    assert record.body is None
    assert record.outcome is not Outcome.CHANGED
    assert record.model is None or visit.judgement.good_copy


def test_a_new_copy_brings_body_title_links_and_validators():
    answer = fetched(headers=[("ETag", '"new"'), ("Last-Modified", "today"), ("X-More", "y")])
    visit = visit_of(answer, page_of(**HELD))
    record = record_of(visit, VisitFeedback(), HostUpdate(), NO_CAPS)
    assert (record.outcome, record.state, record.failure) == (
        Outcome.CHANGED,
        PageState.VISITED,
        None,
    )
    assert record.digest == record.body.digest == digest(HTML)
    assert (record.title, record.etag, record.last_modified) == ("T", '"new"', "today")
    assert (record.answer.status, record.answer.content_type) == (200, "text/html")
    assert found_in(visit) == {"http://a.test/dir/x", "http://a.test/y"}
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
def test_what_a_page_lets_us_follow(head, headers, found):
    visit = visit_of(
        fetched(body=HTML.replace(b"<title>", head.encode() + b"<title>"), headers=headers)
    )
    assert found_in(visit) == {f"http://a.test{path}" for path in found}
    kept = "noarchive" not in head
    assert (visit.body is not None) == kept
    assert (visit.judgement.outcome is Outcome.CHANGED) == kept


def test_a_link_marked_nofollow_is_not_followed_elsewhere_on_the_page_either():
    body = b"<!DOCTYPE html><a href='x' rel='nofollow'>x</a><a href='/y'>y</a>"
    assert found_in(visit_of(fetched(body=body))) == {"http://a.test/y"}


@pytest.mark.parametrize(
    ("location", "admitted"),
    [
        ("/elsewhere", {"http://a.test/elsewhere"}),
        ("http://a.test:81/p", {"http://a.test:81/p"}),
        ("http://b.test/", set()),
        ("http://www.a.test/", set()),
    ],
)
def test_a_redirect_names_one_page_as_deep_as_its_own(location, admitted):
    visit = visit_of(fetched(302, b"", [("Location", location)]))
    assert found_in(visit) == admitted
    assert {each.depth for each in visit.admitted.found} <= {3}
    assert {each.reason for each in visit.admitted.refusals} == (set() if admitted else {"host"})


def test_a_seed_takes_its_domain_along_and_a_page_does_not():
    # registrable domain: example.org
    moved = fetched(301, b"", [("Location", "http://www.example.org/")])
    for seed, found in ((True, {"http://www.example.org/"}), (False, set())):
        page = page_of(url="http://example.org/", host="example.org", seed=seed, depth=0)
        assert found_in(visit_of(moved, page, hosts=["example.org"])) == found


def test_redirects_out_of_scope_are_followed_where_the_site_says_so():
    visit = visit_of(
        fetched(302, b"", [("Location", "http://b.test/")]), follow_redirects_out_of_scope=True
    )
    assert found_in(visit) == {"http://b.test/"}


@pytest.mark.parametrize("location", ["", "http://", "javascript:alert(1)", "ftp://a.test/", URL])
def test_redirects_to_nowhere_fail(location):
    visit = visit_of(fetched(302, b"", [("Location", location)]))
    assert visit.judgement.failure is Failure.BAD_REDIRECT
    assert found_in(visit) == set()


class TestWhenAgain:
    def test_a_good_visit_leaves_it_to_the_policy(self):
        visit = visit_of(fetched(), page_of(failure_count=4))
        assert (visit.retry_at, visit.failure_count) == (None, 0)

    def test_failures_wait_longer_each_time(self):
        waits = [
            visit_of(fetched(500), page_of(failure_count=count)).retry_at - NOW
            for count in range(3)
        ]
        assert waits == [60.0, 120.0, 240.0]

    def test_a_retry_after_is_the_least(self):
        for text, wait_s in (("7200", 7200.0), ("1", 60.0), ("nonsense", 60.0)):
            visit = visit_of(fetched(503, b"", [("Retry-After", text)]))
            assert visit.retry_at == NOW + wait_s

    def test_what_is_gone_is_asked_daily_and_monthly_once_retired(self):
        assert visit_of(fetched(404)).retry_at == NOW + GONE_RETRY_S
        nearly = Grace(GONE_GRACE_VISITS - 1, NOW - GONE_GRACE_S)
        visit = visit_of(fetched(404), page_of(grace=nearly))
        assert (visit.state, visit.retry_at) == (PageState.GONE, NOW + RETIRED_RETRY_S)

    def test_a_page_that_comes_back_is_a_page_again(self):
        visit = visit_of(fetched(), page_of(state=PageState.GONE, grace=Grace(9, NOW - 1e7)))
        assert (visit.state, visit.grace, visit.retry_at) == (PageState.VISITED, Grace(), None)


class TestAsking:
    def test_headers_of_a_site_go_to_its_own_hosts_alone(self, tmp_path):
        secret = tmp_path / "headers"
        secret.write_text("Authorization: Bearer s3cret\n")
        secret.chmod(0o600)
        site = make_site(seeds=["http://a.test/"], headers_file=str(secret))
        asked = [
            request_for(page_of(), site, Validators(), host=host, delay_s=1.0).headers
            for host in ("a.test", "b.test", "www.a.test")
        ]
        assert asked == [(("Authorization", "Bearer s3cret"),), (), ()]
        assert "s3cret" not in repr(site)

    def test_validators_are_sent_as_given(self):
        site = make_site(seeds=["http://a.test/"])
        sent = Validators(etag='"e"', last_modified="today")
        request = request_for(page_of(), site, sent, host="a.test", delay_s=1.0)
        assert request.headers == (("If-None-Match", '"e"'), ("If-Modified-Since", "today"))
        assert not request.allow_private

    @pytest.mark.parametrize(
        ("body", "content_type", "verdict"),
        [
            (HTML, "text/html", None),
            (HTML, "application/octet-stream", None),  # sniffed, not believed
            (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", "text/html", Failure.WRONG_TYPE),
            (b"\x89PNG\r\n\x1a\n" + bytes(20), "text/html", Failure.WRONG_TYPE),
        ],
    )
    def test_unwanted_types_are_not_read_to_their_end(self, body, content_type, verdict):
        site = make_site(seeds=["http://a.test/"])
        accept = request_for(page_of(), site, Validators(), host="a.test", delay_s=1.0).accept
        headers = ((b"Content-Type", content_type.encode()),)
        assert accept(200, headers, body) == verdict
        assert accept(404, headers, body) is None


def model_of(*, changed_at, until):
    """The stored model of a page whose changes are exactly known up to an instant."""
    model = PageModel()
    model.observe_changes(changed_at, until)
    return model


@pytest.mark.parametrize(
    ("last_visit_at", "counted"),
    [(NOW - 10_000.0, 0), (NOW - 3_000.0, 1)],
    ids=["a change the history holds", "one after the last it holds"],
)
def test_a_visit_counts_no_change_that_the_history_has_told(last_visit_at, counted):
    known = model_of(changed_at=[NOW - 90_000.0, NOW - 5_000.0], until=NOW - 2_000.0)
    page = page_of(
        **HELD,
        last_visit_at=last_visit_at,
        model=known.to_bytes(),
        exact_until=NOW - 2_000.0,
    )
    after = model_after(visit_of(fetched(), page), None)
    assert after.changed == counted
    assert after.changed_visits == known.changed_visits + 1
    assert after.last_visit_at == NOW
    assert (after.last_change_at == NOW - 5_000.0) == (not counted)
    failed_since = page._replace(
        last_visit_at=NOW - 2_500.0, last_change_at=last_visit_at, failure_count=1
    )
    assert model_after(visit_of(fetched(), failed_since), None).changed == counted
    # Without a history the visit is all that is known.
    alone = model_after(visit_of(fetched(), page._replace(exact_until=None)), None)
    assert alone.changed == 1


def test_a_history_read_during_a_visit_is_kept():
    # The visit began from what the one before had left.
    begun = PageModel()
    begun.update(Observation(NOW - 60.0, True))
    page = page_of(**HELD, last_visit_at=NOW - 60.0, model=begun.to_bytes())
    record = record_of(visit_of(fetched(), page), VisitFeedback(), HostUpdate(), NO_CAPS)
    assert record.model_before == page.model
    told = [NOW - 90_000.0, NOW - 5_000.0, NOW - 20.0]
    history = model_of(changed_at=told, until=NOW - 10.0)
    after = PageModel.from_bytes(record.remodel(history.to_bytes(), NOW - 10.0))
    assert (after.first_at, after.last_change_at) == (told[0], told[-1])
    assert (after.visits, after.changed, after.last_visit_at) == (history.visits + 1, 0, NOW)
    # A change that the history does not hold is counted.
    early = model_of(changed_at=told[:2], until=NOW - 70.0)
    after = PageModel.from_bytes(record.remodel(early.to_bytes(), NOW - 70.0))
    assert (after.first_at, after.changed) == (told[0], 1)


def test_a_record_that_waits_holds_no_page_in_memory():
    visit = visit_of(fetched(), page_of(**HELD))
    held, seen = [record_of(visit, VisitFeedback(), HostUpdate(), NO_CAPS)], set()
    while held:
        part = held.pop()
        if id(part) not in seen and not isinstance(part, (type, FunctionType)):
            seen.add(id(part))
            held += gc.get_referents(part)
    assert visit.content.page is not None
    assert id(visit.content.page) not in seen


def test_a_clock_set_back_hides_no_change():
    known = model_of(changed_at=[NOW - 90_000.0, NOW + 50_000.0], until=NOW + 60_000.0)
    page = page_of(
        **HELD, last_visit_at=NOW - 60.0, model=known.to_bytes(), exact_until=NOW - 80_000.0
    )
    assert model_after(visit_of(fetched(), page), None).changed == 1
