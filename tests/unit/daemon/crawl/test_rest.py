"""From when the delay of a host counts after a visit."""

from types import SimpleNamespace

import pytest

from crawld.daemon.crawl.visitor import Visitor
from crawld.net.exchange import Failure, FetchFailure, FetchResponse

PAGE = b'<script>mw.config.set({"wgBackendResponseTime":150});</script>'


def make_response(body, headers=((b"cache-control", b"private"),)):
    return FetchResponse(
        status=200,
        reason="OK",
        http_version="HTTP/1.1",
        headers=headers,
        body=body,
        wire_bytes=len(body),
        address="192.0.2.1",
        sent_at=10.0,
        arrived_at=10.1,
        ended_at=10.2,
        duration_s=0.2,
    )


def rests_from(response):
    """Return from when the delay counts after a visit with a response."""
    times = []
    host = SimpleNamespace(
        delay_s=lambda: 1.0, record_success=lambda at: None, rest_from=times.append
    )
    judgement = SimpleNamespace(of_host=False, host_trouble=False)
    visit = SimpleNamespace(response=response, judgement=judgement, at=0.0)
    Visitor.rest(None, host, visit)
    [at] = times
    return at


def test_a_page_of_a_wiki_proves_that_its_request_arrived_before():
    assert rests_from(make_response(PAGE)) == pytest.approx(10.0505)


def test_without_a_proof_the_observation_counts():
    assert rests_from(make_response(b"")) == 10.1
    assert rests_from(make_response(PAGE, headers=())) == 10.1


def test_an_earlier_observation_counts():
    late = PAGE.replace(b"150", b"50")
    assert rests_from(make_response(late)) == 10.1


def test_after_a_failure_its_end_counts():
    failure = FetchFailure(
        failure=next(iter(Failure)), detail="", address="192.0.2.1", sent_at=10.0, at=10.3
    )
    assert rests_from(failure) == 10.3
