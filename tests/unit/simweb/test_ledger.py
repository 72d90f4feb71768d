import json

import pytest

from crawld.simweb.ledger import Ledger, LedgerRow


def row(complete_s, host="a.test", address="127.0.0.1", target="/"):
    first_byte_s, at, peer = complete_s - 0.001, 1.7e9 + complete_s, "127.0.0.1"
    return LedgerRow(
        first_byte_s, complete_s, at, host, peer, address, target, 200, "crawld/1", '"etag"'
    )


ROWS = [
    row(0.0),
    row(0.5, "b.test"),
    row(1.0),
    row(1.2, "c.test", "127.0.0.9"),
    row(1.25, "c.test", "127.0.0.8"),
    row(3.5, target="/x"),
]


def filled(path=None):
    ledger = Ledger(path)
    for entry in ROWS:
        ledger.record(entry)
    return ledger


def test_spacing_and_violations_by_host_and_address():
    ledger = filled()
    assert ledger.spacings() == pytest.approx({"a.test": 1.0, "c.test": 0.05})
    assert ledger.spacings(by="address") == {"127.0.0.1": 0.5}
    assert [v.key for v in ledger.violations(delay_s=1.0)] == ["c.test"]
    found = [each for each in ledger.violations(delay_s=2.6) if each.key == "a.test"]
    expected = [(1.0, 1.7e9 + 1, "/"), (2.5, 1.7e9 + 3.5, "/x")]
    assert [(v.gap_s, v.at, v.target) for v in found] == expected
    assert len(ledger.violations(delay_s=2.0, by="address")) == 2


def test_requests_that_are_read_late_have_the_gaps_of_their_arrival():
    ledger = Ledger()
    for at in (2.0, 0.0, 1.5):
        ledger.record(row(at))
    assert [(gap_s, index) for _, gap_s, index in ledger.gaps()] == [(1.5, 2), (0.5, 0)]


def test_rows_round_trip():
    ledger = filled()
    assert list(ledger.rows()) == ROWS
    assert ledger.requests("c.test") == ROWS[3:5]
    assert ledger.requests("unknown") == []
    assert ledger.hosts() == {"a.test": 3, "b.test": 1, "c.test": 2}


def test_another_process_reads_what_was_written_even_if_cut_short(tmp_path):
    path = tmp_path / "ledger.jsonl"
    filled(path).close()
    with path.open("a") as file:
        file.write(json.dumps({"first_byte_s": 1})[:-1])
    assert list(Ledger.read(path).rows()) == ROWS


def test_a_full_ledger_refuses_to_compute_gaps():
    ledger = Ledger(max_rows=2)
    for entry in ROWS:
        ledger.record(entry)
    assert (len(ledger), ledger.dropped) == (2, 4)
    with pytest.raises(RuntimeError, match="full"):
        ledger.violations(delay_s=1.0)
