"""Server-sent events by the standard, in any chunks, and Wikimedia's events."""

import json
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.sources.event_stream import (
    MAX_EVENT_BYTES,
    MAX_RETRY_S,
    EventReader,
    GapDetector,
    PageChange,
    host_filter,
    parse_event,
    read_change,
    renamed_titles,
)
from tests.unit.steps import count_steps


def read(*pieces, reader=None):
    reader = reader or EventReader()
    return [event for piece in pieces for event in reader.feed(piece)]


def test_events():
    stream = b"event: message\nid: 1\ndata: one\n\n: a comment\n\ndata:two\ndata: three\nid: 2\n\n"
    assert read(stream) == [(b"one", "message", "1"), (b"two\nthree", "message", "2")]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"\xef\xbb\xbfdata: x\n\n", [(b"x", "message", "")]),
        (b"data: x\r\n\r\n", [(b"x", "message", "")]),
        (b"data: x\r\rdata: y\r\r", [(b"x", "message", ""), (b"y", "message", "")]),
        (b"data\n\n", [(b"", "message", "")]),
        (b"data:  x\n\n", [(b" x", "message", "")]),
        (b"event: other\nunknown: y\ndata: x\n\n", [(b"x", "other", "")]),
        (b"event: other\n\ndata: x\n\n", [(b"x", "message", "")]),
        (b"id: 1\n\ndata: x\n\n", [(b"x", "message", "1")]),
        (b"id: 1\ndata: x\n\nid\ndata: y\n\n", [(b"x", "message", "1"), (b"y", "message", "")]),
        (b"id: a\0b\ndata: x\n\n", [(b"x", "message", "")]),
        (b"data: half an event", []),
        (b"data: half an event\n", []),
        (b"", []),
    ],
)
def test_edge_cases_of_the_standard(stream, events):
    assert read(stream) == events


STREAM = (
    b'\xef\xbb\xbfid: [{"offset":1}]\r\ndata: {"a":1}\r\n\r\n:ok\n\nretry: 5000\n'
    b"event: e\rdata: x\rdata: y\r\r\ndata\n\nid: 3\ndata: end\n\n"
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_chunk_boundaries_do_not_matter(cuts):
    reader = EventReader()
    bounds = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in pairwise(bounds)]
    assert read(*pieces, reader=reader) == read(STREAM)
    assert (reader.last_id, reader.retry_s) == ("3", 5.0)


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_junk_does_not_raise(pieces):
    for event in read(*pieces):
        assert len(event.data) <= MAX_EVENT_BYTES


@pytest.mark.parametrize("line", [b"data: " + b"x" * 9_000, b":" + b"x" * 20_000, b"x" * 999])
@pytest.mark.parametrize("piece_bytes", [1, 10])
def test_a_line_in_many_pieces_costs_no_more_than_its_bytes(line, piece_bytes):
    def steps(text):
        starts = range(0, len(text), piece_bytes)
        return count_steps(read, *(text[start : start + piece_bytes] for start in starts))

    assert steps(line * 2) < 2.3 * steps(line) + 2_000


def test_an_incomplete_event_does_not_change_the_id():
    reader = EventReader("0")
    read(b"id: 1\ndata: x\n\nid: 2\ndata: y\n", reader=reader)
    assert reader.last_id == "1"


@pytest.mark.parametrize("line_end", [b"", b"\ndata: "])
def test_an_endless_event_is_dropped_and_not_held(line_end):
    reader = EventReader()
    piece = b"x" * 50_000 + line_end
    found = read(b"data: ", *[piece] * 40, b"\n\ndata: next\n\n", reader=reader)
    assert found == [(b"next", "message", "")]
    assert reader.dropped == 1


@pytest.mark.parametrize(
    ("written", "retry_s"),
    [(b"5000", 5.0), (b"", None), (b"-1", None), (b"1e3", None), (b"999999999", MAX_RETRY_S)],
)
def test_retry_sets_the_wait_after_a_break(written, retry_s):
    reader = EventReader()
    read(b"retry: " + written + b"\n\n", reader=reader)
    assert reader.retry_s == retry_s


# --- Wikimedia's events --------------------------------------------------------------------------

EDIT = {
    "$schema": "/mediawiki/recentchange/1.0.0",
    "meta": {
        "uri": "https://en.wikipedia.org/wiki/Z%C3%BCrich",
        "id": "0f3f",
        "dt": "2026-11-21T12:00:01Z",
        "domain": "en.wikipedia.org",
        "stream": "mediawiki.recentchange",
    },
    "id": 1,
    "type": "edit",
    "namespace": 0,
    "title": "Zürich",
    "title_url": "https://en.wikipedia.org/wiki/Z%c3%bcrich",
    "timestamp": 1_795_262_400,
    "revision": {"old": 7, "new": 8},
    "server_url": "https://en.wikipedia.org",
    "wiki": "enwiki",
}
CHANGE = PageChange(
    "enwiki",
    "Zürich",
    "https://en.wikipedia.org/wiki/Z%C3%BCrich",
    1_795_262_400.0,
    8,
    "edit",
    "https://en.wikipedia.org",
)
PAGE_CHANGE = {
    "meta": {"uri": "https://en.wikipedia.org/wiki/A_b", "domain": "en.wikipedia.org"},
    "dt": "2026-11-21T12:00:00Z",
    "page_change_kind": "edit",
    "wiki_id": "enwiki",
    "page": {"page_id": 5, "page_title": "A_b", "namespace_id": 0},
    "revision": {"rev_id": 9},
}


def change_of(event):
    return read_change(parse_event(json.dumps(event).encode())[0])


def test_an_edit():
    assert change_of(EDIT) == CHANGE


def test_a_page_change():
    assert change_of(PAGE_CHANGE) == PageChange(
        "enwiki", "A b", "https://en.wikipedia.org/wiki/A_b", 1_795_262_400.0, 9, "edit", ""
    )


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"type": "new"}, "new"),
        ({"type": "log", "log_type": "delete"}, "delete"),
        ({"type": "log", "log_type": "move"}, "move"),
        ({"type": "log", "log_type": "import"}, "import"),
        ({"type": "log", "log_type": "patrol"}, None),
        ({"type": "log", "log_type": "thanks"}, None),
        ({"type": "categorize"}, None),
        ({"type": "external"}, None),
        ({"meta": {**EDIT["meta"], "domain": "canary"}}, None),
        ({"title": ""}, None),
        ({"title": None}, None),
        ({"type": ["edit"]}, None),
    ],
)
def test_only_visible_changes_are_returned(more, kind):
    change = change_of({**EDIT, **more})
    assert (change and change.kind) == kind


def test_canaries_and_hidden_revisions_of_page_changes():
    assert change_of({**PAGE_CHANGE, "meta": {"domain": "canary"}}) is None
    assert change_of({**PAGE_CHANGE, "page_change_kind": "visibility_change"}) is None


def test_the_time_falls_back_on_meta():
    said = {**EDIT, "timestamp": "soon"}
    assert change_of(said).at == 1_795_262_401.0
    assert change_of({**said, "meta": {}}).at is None


def test_moves():
    log = {**EDIT, "type": "log", "log_type": "move", "title": "A", "log_params": {"target": "B"}}
    assert renamed_titles(log) == ("A", "B")
    before = {"page": {"page_title": "Old_a"}}
    moved = {**PAGE_CHANGE, "page_change_kind": "move", "prior_state": before}
    assert renamed_titles(moved) == ("Old a", "A b")
    assert renamed_titles(EDIT) is None
    assert renamed_titles({**log, "log_params": []}) is None


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{", b'"x"', b"\xff", b"[" * 100_000])
def test_events_without_a_change(data):
    assert parse_event(data) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)
    )
)
def test_events_of_the_wrong_shape(value):
    assert read_change(dict.fromkeys(EDIT, value)) is None or isinstance(value, str)


LIVELY = [float(second) for second in range(10)]
QUIET = [3_600.0 * hour for hour in range(10)]


def gaps(continuity, received_until, *times):
    """Return the gaps that a connection shows, and whether their search is over."""
    continuity.start(received_until)
    found = [gap for at in times if (gap := continuity.observe(at)) is not None]
    return found, continuity.since is None


@pytest.mark.parametrize(
    ("received_until", "times", "found", "settled"),
    [
        (None, [100.0], [], True),
        (100.0, [], [], False),
        (100.0, [101.0], [], True),
        (100.0, [4_000.0], [], False),
        (100.0, [4_000.0 + each for each in LIVELY], [(100.0, 4_000.0)], True),
        (100.0, [8_000.0 + each for each in QUIET], [], True),
        (100.0, [80_000.0 + each for each in QUIET], [(100.0, 80_000.0)], True),
    ],
)
def test_a_stream_that_resumes_later_has_a_gap(received_until, times, found, settled):
    assert gaps(GapDetector(), received_until, *times) == (found, settled)


def test_the_rhythm_is_learned_across_connections_without_the_breaks():
    continuity = GapDetector()
    assert gaps(continuity, None, *LIVELY[:6]) == ([], True)
    assert gaps(continuity, 5.0, *[500.0 + each for each in LIVELY[:2]]) == ([], False)
    assert gaps(continuity, 5.0, *[900.0 + each for each in LIVELY[:3]]) == ([(5.0, 900.0)], True)


def test_host_filter_passes_events_that_name_a_host():
    may_name = host_filter(["en.wiki.test", "b.test"])
    assert may_name(b'{"title_url": "https://EN.wiki.test/wiki/A"}')
    assert may_name(b'{"title_url": "https:\\/\\/b.test\\/wiki\\/A"}')
    assert not may_name(b'{"title_url": "https://enxwiki.test/wiki/A"}')
    assert host_filter(["a.test", "xn--bcher-kva.test"])(b"b\xc3\xbccher")


@pytest.mark.parametrize(
    ("written", "last_id"),
    [
        (b'[{"offset": 7}]', '[{"offset": 7}]'),
        (b"", ""),
        (b"caf\xc3\xa9", "caf\u00c3\u00a9"),
        (b"a\x01b", "before"),
        (b"a\x0bb", "before"),
        (b" trailing ", "before"),
        (b"\x7f", "before"),
    ],
)
def test_ids_that_cannot_be_sent_back_are_ignored(written, last_id):
    reader = EventReader()
    read(b"id: before\ndata: x\n\nid: " + written + b"\ndata: y\n\n", reader=reader)
    assert reader.last_id == last_id


@pytest.mark.parametrize(
    "event",
    [
        *(b"[" * 99_999, b'{"a":' * 30_000, b"9" * 5_000, b'{"timestamp": 1e999}', b"\xff"),
        b'{"type": "edit", "title": "\\ud800", "title_url": "https://a.test/\\udfff"}',
        b'{"type": "edit", "title": "a", "revision": {"new": %s}}' % (b"9" * 4_000),
        b'{"type": "edit", "title": "a", "timestamp": %s}' % (b"9" * 400),
        b'{"type": ["edit"], "title": {}, "meta": 5, "revision": []}',
        b'{"page_change_kind": 7, "page": [], "revision": {"rev_id": 1e400}}',
        b'{"type": "log", "log_type": {}, "title": "a"}',
        b'{"meta": {"domain": [], "dt": {}}, "type": "edit", "title": "a"}',
    ],
)
def test_hostile_events_have_values_that_can_be_stored(event):
    parsed = parse_event(event)
    if parsed is None:
        return
    fields, at = parsed
    assert at is None or 0 < at < 1e11
    change = read_change(fields)
    if change is not None:
        change.title.encode()
        assert change.revision is None or abs(change.revision) < 2**63
    renamed_titles(fields)


def test_little_is_kept_of_a_line_without_an_end():
    reader = EventReader()
    tracemalloc.start()
    try:
        for _ in range(20 * MAX_EVENT_BYTES // 4096):
            assert read(b"x" * 4096, reader=reader) == []
        assert tracemalloc.get_traced_memory()[0] < 3 * MAX_EVENT_BYTES
    finally:
        tracemalloc.stop()
    assert [event.data for event in read(b"\n\n", b"data: y\n\n", reader=reader)] == [b"y"]
