"""What a page of a wiki proves about the arrival of its request."""

import pytest

from crawld.sources.mediawiki_timing import TAIL_BYTES, latest_arrival

SENT_AT, ENDED_AT = 100.0, 100.2
END = (
    b"<script>(RLQ=window.RLQ||[]).push(function(){"
    b'mw.config.set({"wgBackendResponseTime":%d});});</script></body></html>'
)
PRIVATE = {"cache-control": "private, must-revalidate, max-age=0"}


def told(body, headers=PRIVATE):
    return latest_arrival(body, headers.get, SENT_AT, ENDED_AT)


def page(worked_ms, *, before=b"", after=b""):
    return before + END % worked_ms + after


def test_the_wiki_had_the_request_before_it_worked_on_it():
    # Rounded milliseconds: it may have worked half of one less.
    assert told(page(150)) == pytest.approx(ENDED_AT - 0.1495)
    assert told(page(0)) == pytest.approx(ENDED_AT + 0.0005)


def test_the_wiki_may_tell_more_beside_it():
    names = END.replace(b"%d});", b'%d,"wgHostname":"web"});')
    assert told(names % 150) == pytest.approx(ENDED_AT - 0.1495)
    report = b"<!-- report -->" * 1_000
    assert told(page(150, after=report)) == pytest.approx(ENDED_AT - 0.1495)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"cache-control": "s-maxage=18000, must-revalidate, max-age=0"},
        {**PRIVATE, "age": "3"},
        {**PRIVATE, "age": "unknown"},
    ],
)
def test_a_page_that_a_cache_may_have_kept_tells_nothing(headers):
    assert told(page(150), headers) is None


@pytest.mark.parametrize(
    "headers", [{"cache-control": "No-Store"}, {**PRIVATE, "age": "0"}, PRIVATE]
)
def test_a_page_that_no_cache_keeps_tells_it(headers):
    assert told(page(150), headers) is not None


def test_a_page_of_the_files_of_the_wiki_tells_nothing():
    assert told(page(150, after=b"<!-- Cached 20260102030405 -->")) is None
    assert told(page(150, after=b"<!-- Cached/compressed 20260102030405 -->")) is None


def test_longer_work_than_the_response_took_was_for_another_request():
    assert told(page(200)) is not None
    assert told(page(202)) is None


def test_only_the_end_of_a_page_counts():
    quoted = END % 199
    assert told(page(150, before=quoted)) == pytest.approx(ENDED_AT - 0.1495)
    assert told(quoted + b"." * TAIL_BYTES) is None
    assert told(b'<p>{"wgBackendResponseTime":150}</p>') is None
