import pytest

from crawld.core.page import Failure
from crawld.net.exchange import FetchFailure
from crawld.net.outage import PROBE_S, WINDOW_S, OutageDetector, network_evidence


def observed(*verdicts, every_s=1.0):
    """Return a detector after these results (`host+` or `host-`), and the last time."""
    detector = OutageDetector()
    now = 1000.0
    for verdict in verdicts:
        now += every_s
        detector.observe(verdict[:-1], verdict[-1] == "+", now)
    return detector, now


@pytest.mark.parametrize(
    ("verdicts", "outage"),
    [
        ("a+", False),
        # Nothing has worked yet.
        ("a-", True),
        ("a- a-", True),
        ("a- b- c-", True),
        ("a- a+", False),
        ("a- b- c- d+", False),
        # Hosts that never worked show nothing once another has.
        ("a+ b-", False),
        ("a+ b- c- d- e- f- g-", False),
        ("a- b- c- d+ a-", False),
        # A host that worked fails: at once it is only suspected.
        ("a+ a-", False),
        ("a+ a- a-", True),
        ("a+ b+ a- b-", True),
        ("a+ b+ a- a- a-", False),
        ("a+ b+ c+ d+ e+ f+ a- b- c- d-", False),
        ("a+ b+ c+ d+ e+ f+ a- b- c- d- e-", True),
        # While one host answers, the network works; those that failed before do not count again.
        ("a+ b+ c+ a- b- a- c+ a- b- a- b-", False),
        ("a+ b+ c+ d+ e+ f+ a- b- c- d- e- f+ a- b- c- d- e-", False),
        # Hosts of one domain count once.
        (
            "a+ b+ c+ h1.d.test+ h2.d.test+ h3.d.test+ h4.d.test+ h5.d.test+"
            " h1.d.test- h2.d.test- h3.d.test- h4.d.test- h5.d.test- h5.d.test-",
            False,
        ),
        ("a+ h1.b.test+ h2.b.test+ h3.b.test+ h1.b.test- h2.b.test- h3.b.test-", False),
        ("h1.b.test+ h2.b.test+ h1.b.test- h1.b.test- h1.b.test-", False),
        ("h1.b.test+ h2.b.test+ h1.b.test- h2.b.test- h1.b.test-", True),
    ],
)
def test_an_outage_needs_failures_of_hosts_that_worked(verdicts, outage):
    detector, now = observed(*verdicts.split())
    assert detector.is_outage(now) is outage


def test_a_burst_of_failures_between_two_answers_is_no_outage():
    detector, now = observed(*["a+", "b+", "c+", "d+", "e+", "f+"])
    for host in "abcde":
        detector.observe(host, False, now + 0.1)
    assert detector.is_suspected(now + 0.1)
    assert not detector.is_outage(now + 0.1)
    detector.observe("f", True, now + 0.25)
    assert not detector.is_suspected(now + 0.25)


def test_old_results_do_not_count():
    detector, now = observed("a+", "b+", "c+")
    detector.observe("a", False, now + WINDOW_S + 1)
    assert detector.is_outage(now + WINDOW_S + 1)


def test_an_outage_lapses_for_a_probe_and_is_renewed_by_its_failure():
    detector, now = observed("a-", "b-")
    assert detector.is_outage(now + PROBE_S - 0.1)
    assert not detector.is_outage(now + PROBE_S)
    detector.observe("a", False, now + PROBE_S)
    assert detector.is_outage(now + PROBE_S)


def failed(failure, *, local=False, status=None):
    unsent = {"detail": "", "address": None, "sent_at": None, "at": 0.0}
    return FetchFailure(failure=failure, local_fault=local, status=status, **unsent)


@pytest.mark.parametrize(
    ("result", "evidence"),
    [
        (failed(Failure.DNS), None),
        (failed(Failure.DNS, local=True), False),
        (failed(Failure.CONNECT), True),
        (failed(Failure.CONNECT, local=True), False),
        (failed(Failure.TIMEOUT), None),
        (failed(Failure.TIMEOUT, status=200), True),
        (failed(Failure.ADDRESS_REFUSED), None),
        (failed(Failure.TLS), True),
    ],
)
def test_network_evidence_of_a_fetch(result, evidence):
    assert network_evidence(result) is evidence


def test_a_lack_of_memory_shows_that_a_peer_answers():
    lack = FetchFailure(
        failure=Failure.MEMORY, detail="", address=None, sent_at=0.0, at=1.0, local_fault=True
    )
    assert network_evidence(lack) is True
