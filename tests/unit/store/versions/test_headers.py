import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.errors import CorruptDatabaseError
from crawld.store.versions import headers

NOT_MODIFIED = [
    (b"Server", b"nginx/1.22.1"),
    (b"Date", b"Sat, 21 Nov 2026 05:19:34 GMT"),
    (b"Last-Modified", b"Mon, 03 Nov 2025 11:23:54 GMT"),
    (b"Connection", b"keep-alive"),
    (b"ETag", b'"65a3b1c2-1f4d"'),
    (b"Cache-Control", b"max-age=0"),
    (b"Vary", b"Accept-Encoding"),
    (b"X-Content-Type-Options", b"nosniff"),
]


@given(st.lists(st.tuples(st.binary(max_size=80), st.binary(max_size=200)), max_size=30))
def test_any_lines_are_unpacked_unchanged(lines):
    assert headers.unpack(headers.pack(lines)) == tuple(lines)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [(b"", b"")],
        [(b"A", b""), (b"", b"b")],
        [(b"Set-Cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"Set-Cookie", b"a=1")],
        [(b"X-Latin", b"caf\xe9 \xff\x00")],
        [(b"X-Folded", b"one\n two"), (b"\n", b"\n\n")],
    ],
)
def test_order_case_repetition_and_odd_bytes_are_kept(lines):
    assert headers.unpack(headers.pack(lines)) == tuple(lines)


def test_a_typical_304_fits_in_100_bytes():
    assert len(headers.pack(NOT_MODIFIED)) <= 100


def test_blocks_of_earlier_versions_stay_readable():
    # The dictionary is part of the file format: if this fails, the dictionary was changed.
    block = bytes.fromhex(FROZEN_BLOCK)
    assert headers.unpack(block) == tuple(NOT_MODIFIED)


TRUNCATED = headers.pack(NOT_MODIFIED)[:-5]


@pytest.mark.parametrize(
    "block", [b"\x01", b"\x01\xff\xff\xff", b"\x09abc", b"\x02" + b"\0" * 9, TRUNCATED]
)
def test_a_damaged_block_is_an_error(block):
    with pytest.raises(CorruptDatabaseError):
        headers.unpack(block)


FROZEN_BLOCK = (
    "0120d945020044023231204e6f76362030353a31393a33343332333a353436356133623163322d31663464220c"
    "00a82e4e60865cda4b03f058019c2aad164fdf2b378b20ca630fbad0c24d740602"
)
