"""What `crawld bench hostile` computes of its measurements, and whom it chooses."""

import socket
import threading

from crawld.bench.hostile import Period, healthy_gaps_ms, select_waves
from crawld.bench.hostile_probe import Probe
from crawld.simweb.hostile.catalogue import SOCKET_FAMILIES
from crawld.simweb.ledger import Ledger, LedgerRow


def ledger_of(*times):
    ledger = Ledger()
    for at in times:
        ledger.record(LedgerRow(at, at, at, "a.test", "127.0.0.1", "127.0.0.1", "/", 200))
    return ledger


def test_silence_until_the_end_of_the_period_is_a_gap():
    gaps = healthy_gaps_ms(ledger_of(0.5, 1.0, 1.25, 9.0), Period(0.9, 4.0))
    assert gaps == [250.0, 2750.0]


def test_a_host_that_was_never_asked_is_a_gap_of_the_whole_period():
    assert healthy_gaps_ms(ledger_of(), Period(1.0, 4.0)) == [3000.0]


def test_each_family_is_represented():
    for quick in (True, False):
        families = {case.family for wave in select_waves(quick=quick) for case in wave}
        assert families == set(SOCKET_FAMILIES)
    many = [case.name for wave in select_waves(quick=False) for case in wave]
    assert len(many) == len(set(many)) > 150
    assert sum(name.startswith("gzip-66mb") for name in many) == 24


def test_a_probe_counts_an_answer_that_never_comes():
    ours, theirs = socket.socketpair()
    asked = threading.Event()

    def targets():
        asked.set()
        return ["/status"]

    with ours, theirs:
        with Probe(lambda: ours, "a.test", targets, every_s=0.0) as probe:
            asked.wait()
            theirs.recv(1000)
            theirs.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            theirs.recv(1000)
            probe.stop()  # and again at the end of its block
        assert [answer[2:] for answer in probe.answers] == [(200, "/status"), (0, "(unanswered)")]
