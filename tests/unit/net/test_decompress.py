import gzip
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.page import Failure
from crawld.net.decompress import PIECE_BYTES, Decoder
from crawld.net.errors import FetchError

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
