import gzip
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.page import Failure
from crawld.net import decompress
from crawld.net.decompress import INPUT_WORK, PAUSE_WORK, PIECE_BYTES, Decoder
from crawld.net.errors import FetchError
from tests.unit.steps import count_steps

MIB = 1024 * 1024


def raw_deflate(data):
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


CODINGS = {
    None: bytes,
    "identity": bytes,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "gzip, zstd": lambda data: zstandard.ZstdCompressor().compress(gzip.compress(data)),
    "gzip,gzip": lambda data: gzip.compress(gzip.compress(data)),
}


def decode(coding, sent, *, chunk_bytes=65536, limit=64 * MIB):
    decoder = Decoder(coding, limit)
    out = []
    for start in range(0, len(sent), chunk_bytes):
        out += decoder.decode(sent[start : start + chunk_bytes])
    out += decoder.finish()
    return b"".join(out)


@pytest.mark.parametrize("coding", CODINGS)
@given(data=st.binary(max_size=3000), chunk_bytes=st.integers(1, 200))
def test_decoding_inverts_the_coding_at_any_chunk_size(coding, data, chunk_bytes):
    assert decode(coding, CODINGS[coding](data), chunk_bytes=chunk_bytes) == data


@given(data=st.binary(max_size=3000), chunk_bytes=st.integers(1, 200))
def test_raw_deflate_is_read(data, chunk_bytes):
    assert decode("deflate", raw_deflate(data), chunk_bytes=chunk_bytes) == data


@given(st.lists(st.binary(max_size=500), min_size=1, max_size=4), st.integers(1, 50))
def test_all_members_and_frames_are_read(parts, chunk_bytes):
    for coding, compress in (("gzip", gzip.compress), ("zstd", CODINGS["zstd"])):
        sent = b"".join(compress(part) for part in parts)
        assert decode(coding, sent, chunk_bytes=chunk_bytes) == b"".join(parts)


@pytest.mark.parametrize("padding", [b"\0" * 600, b"\n", b"<!-- served by -->"])
@pytest.mark.parametrize("chunk_bytes", [1, 7, 65536])
def test_padding_after_the_last_member_is_ignored(padding, chunk_bytes):
    assert decode("gzip", gzip.compress(b"page") + padding, chunk_bytes=chunk_bytes) == b"page"


@pytest.mark.parametrize(
    ("coding", "sent", "failure"),
    [
        ("gzip", b"<!doctype html><p>plain", Failure.DECODING),
        ("deflate", b"\xff\xff\xff\xff\xff", Failure.DECODING),
        ("zstd", b"<!doctype html><p>plain", Failure.DECODING),
        ("br", b"", Failure.DECODING),
        ("gzip, aes128gcm", b"", Failure.DECODING),
        ("gzip, gzip, gzip, gzip", b"", Failure.DECODING),
        ("gzip", gzip.compress(b"page" * 99)[:-9], Failure.TRUNCATED),
        ("gzip", b"\x1f", Failure.TRUNCATED),
        ("deflate", zlib.compress(b"page" * 99)[:-5], Failure.TRUNCATED),
        ("zstd", CODINGS["zstd"](b"page" * 99)[:-3], Failure.TRUNCATED),
    ],
)
def test_undecodable_bodies_raise(coding, sent, failure):
    with pytest.raises(FetchError) as caught:
        decode(coding, sent)
    assert caught.value.failure is failure


@pytest.mark.parametrize("coding", CODINGS)
def test_an_empty_body_decodes_to_nothing(coding):
    assert decode(coding, b"") == b""


@pytest.mark.parametrize("coding", CODINGS)
def test_the_limit_is_exact(coding):
    sent = CODINGS[coding](b"a" * 5000)
    assert len(decode(coding, sent, limit=5000)) == 5000
    with pytest.raises(FetchError) as caught:
        decode(coding, sent, limit=4999)
    assert caught.value.failure is Failure.TOO_LARGE


def gzip_bomb():
    stream = zlib.compressobj(9, wbits=31)
    return b"".join(stream.compress(b"\0" * MIB) for _ in range(20)) + stream.flush()


def zstd_bomb():
    # A frame of run-length blocks: four bytes each decode to 128 KiB.
    header = b"\x28\xb5\x2f\xfd" + bytes([0x00, 7 << 3])
    block = ((128 * 1024) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    return header + block * 20_000


@pytest.mark.parametrize(
    ("coding", "make_bomb"),
    [
        ("gzip", gzip_bomb),
        ("deflate", lambda: zlib.compress(b"\0" * 20 * MIB)),
        ("zstd", zstd_bomb),
        ("gzip, gzip", lambda: gzip.compress(gzip_bomb())),
    ],
    ids=["gzip", "deflate", "zstd", "gzip twice"],
)
def test_a_bomb_stops_at_the_limit(coding, make_bomb):
    bomb = make_bomb()
    limit = 2 * MIB
    decoder = Decoder(coding, limit)
    pieces = []

    def unfold():
        for piece in decoder.decode(bomb):
            pieces.append(len(piece))

    with pytest.raises(FetchError) as caught:
        unfold()
    assert caught.value.failure is Failure.TOO_LARGE
    assert sum(pieces) == limit
    assert max(pieces) <= limit
    if coding != "zstd":
        assert max(pieces) <= PIECE_BYTES


EMPTY_GZIP = gzip.compress(b"", mtime=0)
EMPTY_ZSTD = CODINGS["zstd"](b"")
SKIPPABLE = b"\x50\x2a\x4d\x18" + bytes(4)


def zstd(data):
    return CODINGS["zstd"](data)


def empty_tables(count):
    """Return a zlib stream of empty deflate blocks, each with its own Huffman tables."""
    bits = "0" + "01" + "00000" + "00000" + "0111"
    lengths = {1: "100", 18: "100"}
    order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1]
    bits += "".join(lengths.get(each, "000") for each in order)
    bits += "1" + "1111111" + "1" + f"{118 - 11:07b}"[::-1] + "0" + "0" + "0"
    eight = bits * 8  # whole bytes
    packed = bytes(int(eight[at : at + 8][::-1], 2) for at in range(0, len(eight), 8))
    return zlib.compress(b"")[:2] + packed * count


BUSY = {
    "empty members": ("gzip", lambda count: EMPTY_GZIP * count),
    "empty frames": ("zstd", lambda count: EMPTY_ZSTD * count),
    "skippable frames": ("zstd", lambda count: SKIPPABLE * count),
    "empty members in zstd": ("gzip, zstd", lambda count: zstd(EMPTY_GZIP * count)),
    "empty members in gzip": ("gzip, gzip", lambda count: gzip.compress(EMPTY_GZIP * count)),
    "empty frames in gzip": ("zstd, gzip", lambda count: gzip.compress(EMPTY_ZSTD * count)),
    "skippable frames in zstd": ("zstd, zstd", lambda count: zstd(SKIPPABLE * count)),
    "frames in deflate": ("zstd, deflate", lambda count: zlib.compress(EMPTY_ZSTD * count)),
    "members in three": (
        "gzip, gzip, gzip",
        lambda count: gzip.compress(gzip.compress(EMPTY_GZIP * count)),
    ),
}


@pytest.mark.parametrize("name", BUSY)
def test_parts_without_output_are_refused_after_a_bounded_number(name):
    coding, make = BUSY[name]
    with pytest.raises(FetchError) as caught:
        decode(coding, make(50_000))
    assert caught.value.failure is Failure.DECODING
    assert "compressed parts" in caught.value.detail


@pytest.mark.parametrize("name", BUSY)
def test_the_work_on_small_parts_is_linear(name):
    coding, make = BUSY[name]
    few, many = make(400), make(800)
    assert count_steps(decode, coding, many) < 2.3 * count_steps(decode, coding, few)


@pytest.mark.parametrize("part", [b"", b"x" * 30, bytes(range(256)) * 8])
def test_what_follows_a_member_is_not_copied_again_and_again(monkeypatch, part):
    copied = 0

    class Counting:
        def __init__(self, wbits):
            self._stream = zlib.decompressobj(wbits)

        def decompress(self, data, most):
            nonlocal copied
            copied += len(data)
            return self._stream.decompress(data, most)

        def __getattr__(self, name):
            return getattr(self._stream, name)

    monkeypatch.setattr(
        decompress, "zlib", type("zlib", (), {"decompressobj": Counting, "error": zlib.error})
    )
    sent = gzip.compress(part, mtime=0) * 1000
    decode("gzip", sent)
    assert copied < 4 * len(sent) + PIECE_BYTES


@pytest.mark.parametrize(
    ("coding", "make"),
    [
        ("deflate", lambda: empty_tables(10_000)),
        ("deflate, gzip", lambda: gzip.compress(empty_tables(10_000))),
        ("deflate, zstd", lambda: zstd(empty_tables(10_000))),
        ("deflate", lambda: zlib.compress(b"")[:2] + b"\0\0\0\xff\xff" * 200_000),
        ("zstd", lambda: EMPTY_ZSTD[:-3] + bytes(900_000)),
        ("zstd, gzip", lambda: gzip.compress(EMPTY_ZSTD[:-3] + bytes(900_000))),
    ],
    ids=["tables", "gzip tables", "zstd tables", "stored", "zstd blocks", "gzip zstd blocks"],
)
def test_blocks_without_output_leave_pauses(coding, make):
    decoder = Decoder(coding, 64 * MIB)
    pieces = list(decoder.decode(make()))
    assert b"".join(pieces) == b""
    inner = 900_000 // (PAUSE_WORK // INPUT_WORK) // 2
    assert len(pieces) >= inner


@pytest.mark.parametrize("coding", ["gzip, gzip", "zstd, gzip", "gzip, zstd", "gzip, gzip, gzip"])
def test_a_compressed_body_that_compresses_again_is_refused(coding):
    sent = b"\0" * 4 * MIB
    for name in coding.split(", ")[1:]:
        sent = CODINGS[name](sent)
    with pytest.raises(FetchError) as caught:
        decode(coding, sent)
    assert caught.value.failure in (Failure.DECODING, Failure.TOO_LARGE)


@pytest.mark.parametrize("outer", ["gzip", "zstd"])
def test_what_one_coding_gives_to_the_next_is_limited(outer):
    stored = gzip.compress(bytes(8 * MIB), 0)  # correct, but the next coding makes it small
    with pytest.raises(FetchError, match="compressed again"):
        decode(f"gzip, {outer}", CODINGS[outer](stored))


def test_many_real_members_are_read():
    # bgzip, and servers that flush, make members of some kilobytes.
    part = bytes(range(256)) * 4
    assert decode("gzip", gzip.compress(part) * 20_000) == part * 20_000


@given(st.binary(max_size=300), st.integers(1, 40))
def test_what_follows_padding_is_ignored_at_any_chunk_size(data, chunk_bytes):
    sent = gzip.compress(data) + b"<!---->" + gzip.compress(b"more")
    assert decode("gzip", sent, chunk_bytes=chunk_bytes) == data


@pytest.mark.parametrize(
    "label",
    [
        *("none", "utf-8", "UTF-8", "identity", '""', "binary", "8bit", "text/html", "ISO-8859-1"),
        *("", " , ", "windows-1251", "none, identity", "unknown", "none;q=1", "*", "\xe9"),
    ],
)
@pytest.mark.parametrize("chunk_bytes", [1, 5, 100])
def test_a_label_that_names_no_coding_is_ignored(label, chunk_bytes):
    for page in (b"<p>page", b"p", b""):
        assert decode(label, page, chunk_bytes=chunk_bytes) == page
    packed = gzip.compress(b"page")
    assert decode(f"gzip, {label}", packed, chunk_bytes=chunk_bytes) == b"page"


@pytest.mark.parametrize("label", ["compressed", "GNU-zip", "*"])
@pytest.mark.parametrize("sent", [gzip.compress(b"page"), zstd(b"page"), b"BZh91AY", b"\x1f\x8b"])
def test_an_unknown_label_on_a_compressed_body_is_refused(label, sent):
    with pytest.raises(FetchError) as caught:
        decode(label, sent)
    assert caught.value.failure is Failure.DECODING


def test_a_compressed_file_labelled_as_not_coded_is_left_as_it_is():
    assert decode("none", gzip.compress(b"page", mtime=0)) == gzip.compress(b"page", mtime=0)


@pytest.mark.parametrize(
    ("coding", "sent", "proved"),
    [
        (None, b"page", False),
        ("utf-8", b"page", False),
        ("gzip", gzip.compress(b"page"), True),
        ("gzip", b"", False),
        ("zstd", zstd(b"page"), True),
        ("gzip, zstd", zstd(gzip.compress(b"page")), True),
        ("deflate", zlib.compress(b"page"), True),
    ],
)
def test_a_coding_proves_that_the_body_is_complete(coding, sent, proved):
    decoder = Decoder(coding, MIB)
    list(decoder.decode(sent))
    list(decoder.finish())
    assert decoder.proves_end is proved


def test_pieces_of_zstd_are_small_from_the_first_on():
    packed = zstandard.compress(bytes(30_000_000))
    pieces = list(Decoder("zstd", 2**26).decode(packed))
    assert sum(map(len, pieces)) == 30_000_000
    assert len(pieces[0]) <= 2**20
    assert max(map(len, pieces)) <= 2**22
