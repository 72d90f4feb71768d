import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.export import warc_reader
from crawld.export.warc import record
from crawld.export.warc_reader import DamagedArchiveError, read_warc


def written(*blocks):
    """Return records as gzip members."""
    return [record("resource", f"urn:{n}", 1.0, [], block) for n, block in enumerate(blocks)]


def blocks(data, start=0):
    return [each.block for each in read_warc(io.BytesIO(data), start)]


BLOCKS = (b"one", b"", b"\r\n\r\nWARC/1.1\r\n", b"x" * 300_000)


@pytest.mark.parametrize("form", ["members", "plain", "one member"])
def test_every_form_of_a_file(form):
    members = b"".join(written(*BLOCKS))
    plain = gzip.decompress(members)
    data = {"members": members, "plain": plain, "one member": gzip.compress(plain)}[form]
    assert blocks(data) == list(BLOCKS)


@pytest.mark.parametrize("compressed", [True, False])
def test_reading_can_start_at_an_offset(compressed):
    data = b"".join(written(*BLOCKS))
    data = data if compressed else gzip.decompress(data)
    for number, found in enumerate(read_warc(io.BytesIO(data))):
        assert found.offset is not None
        assert blocks(data, found.offset) == list(BLOCKS[number:])


def test_only_the_first_record_of_a_gzip_member_has_an_offset():
    data = gzip.compress(gzip.decompress(b"".join(written(*BLOCKS))))
    assert [each.offset for each in read_warc(io.BytesIO(data))] == [0, None, None, None]


def test_a_long_block_is_skipped(monkeypatch):
    monkeypatch.setattr(warc_reader, "MAX_BLOCK_BYTES", 400_000)
    data = b"".join(written(b"x" * 400_000, b"after"))
    assert blocks(data) == [b"x" * 400_000, b"after"]
    data = b"".join(written(b"x" * 400_001, b"after"))
    assert blocks(data) == [None, b"after"]


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_truncated_file_gives_the_records_before(cut):
    first, second = written(b"one", bytes(range(256)) * 4)
    found = read_warc(io.BytesIO(first + second[:cut]))
    assert next(found).block == b"one"
    with pytest.raises(DamagedArchiveError, match="truncated"):
        next(found)


@pytest.mark.parametrize(
    "data",
    [
        b"GIF89a",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: -1\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"WARC/1.1\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 999999999999\r\n\r\nx",
        b"A" * 200_000,
        b"\n" * 200_000,
        gzip.compress(b"A" * 50_000_000),
        gzip.compress(b"\r\n" * 20_000_000),
        b"\x1f\x8b" + b"junk" * 10,
    ],
)
def test_malformed_or_malicious_data_is_damage(data):
    with pytest.raises(DamagedArchiveError):
        blocks(data)


def test_an_empty_file_has_no_records():
    assert blocks(b"") == []


@given(st.binary(max_size=2000))
def test_any_bytes_give_records_or_damage(data):
    for form in (data, gzip.compress(data), b"WARC/1.0\r\n" + data):
        try:
            blocks(form)
        except DamagedArchiveError:
            continue
