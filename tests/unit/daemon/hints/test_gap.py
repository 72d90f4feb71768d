from types import SimpleNamespace

from crawld.daemon.hints.gap import GapCursor, GapSource


def test_a_gap_waits_until_it_is_reported_to_its_end():
    row = SimpleNamespace(host="a.test", cursor=GapCursor(1.0, 2.0).to_json())
    source = GapSource(row, None, None)
    assert source.is_waiting(row)
    assert not source.is_waiting(SimpleNamespace(cursor=None))
