"""Content codings: empty frames, chains, bombs, wrong labels, cut and endless streams."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator

import zstandard

from crawld.simweb.hostile.case import (
    BROKEN,
    DECODING,
    STORED,
    TIMEOUT,
    TOO_LARGE,
    TRUNCATED,
    HostileCase,
    html,
    page,
    stream,
)
from crawld.simweb.message import Step

_PAGE = html("<p>compressed" * 200)
_BAD = BROKEN
_EMPTY = STORED | BROKEN
_EMPTY_GZIP = gzip.compress(b"", mtime=0)
_EMPTY_ZSTD = zstandard.ZstdCompressor().compress(b"")
_SKIPPED_ZSTD = b"\x50\x2a\x4d\x18\x00\x00\x00\x00"
_BLOCK = (html("") + b"<p>bomb</p>" * 100_000)[: 1 << 20]


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, 6, mtime=0)


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(data)


def _gzip_text(size_mb: int) -> bytes:
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packing.compress(_BLOCK) for _ in range(size_mb)) + packing.flush()


def _zlib_text(size_mb: int, bits: int = 15) -> bytes:
    packing = zlib.compressobj(9, zlib.DEFLATED, bits)
    return b"".join(packing.compress(_BLOCK) for _ in range(size_mb)) + packing.flush()


def _zstd_text(size_mb: int) -> bytes:
    packing = zstandard.ZstdCompressor(level=1).compressobj()
    return b"".join(packing.compress(_BLOCK) for _ in range(size_mb)) + packing.flush()


def _empty_blocks(count: int) -> bytes:
    """Return one gzip member of empty stored blocks: five bytes each, and no output."""
    raw = b"\x00\x00\x00\xff\xff" * count + b"\x01\x00\x00\xff\xff"
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + raw + bytes(8)


def _zlib_dictionary() -> bytes:
    packing = zlib.compressobj(6, zlib.DEFLATED, 15, zdict=b"compressed")
    return packing.compress(_PAGE) + packing.flush()


def _zstd_dictionary() -> bytes:
    known = zstandard.ZstdCompressionDict(b"compressed " * 40, dict_type=0)
    return zstandard.ZstdCompressor(dict_data=known).compress(_PAGE)


def _wide_window() -> bytes:
    """Return a zstd frame that declares a window of 3.75 TB."""
    return b"\x28\xb5\x2f\xfd\x00\xff" + b"\x01\x00\x00"


def _coded(
    name: str,
    codings: str,
    body: Callable[[], bytes],
    outcomes: frozenset[str],
    *,
    quick: bool = False,
) -> HostileCase:
    extra = f"Content-Encoding: {codings}\r\n"
    return page(name, body, outcomes=outcomes, extra=extra, quick=quick)


def _plain(name: str, label: str, outcomes: frozenset[str] = STORED) -> HostileCase:
    """Return a case that labels a page that is not compressed."""
    return _coded(name, label, lambda: _PAGE, outcomes)


def _endless(name: str, coding: str, block: Callable[[], bytes], first: bytes = b"") -> HostileCase:
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
        f"Content-Encoding: {coding}\r\n\r\n"
    ).encode()

    def steps() -> Iterator[Step]:
        yield head + first
        sent = block()
        while True:
            yield sent

    return stream(name, steps, outcomes=BROKEN)


def _dripped(name: str, coding: str, data: Callable[[], bytes]) -> HostileCase:
    def steps() -> Iterator[Step]:
        yield f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n\r\n".encode()
        for byte in data():
            yield bytes((byte,))
            yield 0.5

    return stream(name, steps, outcomes=TIMEOUT)


CASES: tuple[HostileCase, ...] = (
    _coded(
        "empty-zstd-gzip", "zstd, gzip", lambda: _gzip(_EMPTY_ZSTD * 800_000), _EMPTY, quick=True
    ),
    _coded("empty-skipped-gzip", "zstd, gzip", lambda: _gzip(_SKIPPED_ZSTD * 2_000_000), _EMPTY),
    _coded("empty-gzip-gzip", "gzip, gzip", lambda: _gzip(_EMPTY_GZIP * 1_500_000), _EMPTY),
    _coded("empty-gzip", "gzip", lambda: _EMPTY_GZIP * 500_000, _EMPTY),
    _coded("empty-zstd", "zstd", lambda: _EMPTY_ZSTD * 1_000_000, _EMPTY),
    _coded("empty-skipped", "zstd", lambda: _SKIPPED_ZSTD * 1_500_000, _EMPTY),
    _coded(
        "empty-three", "zstd, gzip, gzip", lambda: _gzip(_gzip(_EMPTY_ZSTD * 3_000_000)), _EMPTY
    ),
    _coded("empty-zstd-zstd", "zstd, zstd", lambda: _zstd(_EMPTY_ZSTD * 3_000_000), _EMPTY),
    _coded(
        "empty-zstd-deflate", "zstd, deflate", lambda: zlib.compress(_EMPTY_ZSTD * 10**6), _EMPTY
    ),
    _coded("empty-stored-blocks", "gzip", lambda: _empty_blocks(2_000_000), _EMPTY),
    _coded("empty-blocks-gzip", "gzip, gzip", lambda: _gzip(_empty_blocks(3_000_000)), _EMPTY),
    _coded("empty-members-page", "gzip", lambda: _EMPTY_GZIP * 200_000 + _gzip(_PAGE), _EMPTY),
    _coded("members-200000", "gzip", lambda: _gzip(b"x") * 200_000, _EMPTY),
    _coded("members-gzip", "gzip, gzip", lambda: _gzip(_gzip(b"<p>") * 800_000), _EMPTY),
    _coded("bomb-gzip", "gzip", lambda: _gzip_text(256), TOO_LARGE, quick=True),
    _coded("bomb-zstd", "zstd", lambda: _zstd_text(1024), TOO_LARGE),
    _coded("bomb-deflate", "deflate", lambda: _zlib_text(256), TOO_LARGE),
    _coded("bomb-deflate-raw", "deflate", lambda: _zlib_text(256, -15), TOO_LARGE | DECODING),
    _coded("bomb-gzip-gzip", "gzip, gzip", lambda: _gzip(_gzip_text(384)), TOO_LARGE),
    _coded("bomb-zstd-gzip", "zstd, gzip", lambda: _gzip(_zstd_text(1024)), TOO_LARGE),
    _coded("bomb-inside", "gzip, gzip", lambda: _gzip(_gzip(_BLOCK * 70)), TOO_LARGE),
    _coded("truncated-gzip", "gzip", lambda: _gzip(_PAGE)[:-12], DECODING | TRUNCATED),
    _coded("truncated-trailer", "gzip", lambda: _gzip(_PAGE)[:-1], DECODING | TRUNCATED | STORED),
    _coded("truncated-zstd", "zstd", lambda: _zstd(_PAGE)[:-5], DECODING | TRUNCATED),
    _coded(
        "truncated-inner", "gzip, gzip", lambda: _gzip(_gzip(_PAGE)[:-12]), DECODING | TRUNCATED
    ),
    _coded("checksum-wrong", "gzip", lambda: _gzip(_PAGE)[:-8] + bytes(8), DECODING),
    _coded(
        "bytes-behind-gzip", "gzip", lambda: _gzip(_PAGE) + b"behind" * 50_000, DECODING | STORED
    ),
    _coded("zeros-behind", "gzip", lambda: _gzip(_PAGE) + bytes(500_000), DECODING | STORED),
    _coded("header-name-5mb", "gzip", lambda: _long_name(), DECODING | TRUNCATED | STORED),
    _coded("label-wrong-gzip", "gzip", lambda: _PAGE, DECODING | STORED),
    _coded("label-wrong-zstd", "zstd", lambda: _gzip(_PAGE), DECODING | STORED),
    _coded("label-wrong-deflate", "deflate", lambda: _gzip(_PAGE), DECODING | STORED),
    _coded("label-twice", "gzip, gzip", lambda: _gzip(_PAGE), DECODING | STORED),
    _coded("label-upper", "GZIP", lambda: _gzip(_PAGE), STORED),
    _coded("label-x-gzip", "x-gzip", lambda: _gzip(_PAGE), STORED),
    _coded("label-empty-items", ", gzip, ,", lambda: _gzip(_PAGE), STORED),
    _plain("label-none", "none"),
    _plain("label-utf8", "utf-8"),
    _plain("label-identity", "identity, identity"),
    _plain("label-empty", ""),
    _plain("label-charset", "text/html; charset=utf-8", STORED | DECODING),
    _plain("label-compress", "compress", DECODING | STORED),
    _plain("label-dictionary", "dcz", DECODING | STORED),
    _plain("label-sdch", "sdch, gzip", DECODING | STORED),
    _plain("label-identities", "identity, " * 5_000 + "identity", STORED | BROKEN),
    _plain("label-gzips", "gzip, " * 9_000 + "gzip", BROKEN),
    _plain("label-control", "gz\x01ip", BROKEN | STORED),
    _coded("chain-30", ", ".join(["gzip"] * 30), lambda: _layers(30), STORED | BROKEN),
    _coded("dictionary-zlib", "deflate", _zlib_dictionary, DECODING),
    _coded("dictionary-zstd", "zstd", _zstd_dictionary, DECODING),
    _coded("window-wide", "zstd", _wide_window, _BAD),
    _endless("endless-empty-gzip", "gzip", lambda: _EMPTY_GZIP * 3_000),
    _endless("endless-empty-zstd", "zstd", lambda: _SKIPPED_ZSTD * 8_000),
    _endless(
        "endless-blocks", "gzip", lambda: b"\0\0\0\xff\xff" * 13_000, b"\x1f\x8b\x08" + bytes(7)
    ),
    _endless("endless-name", "gzip", lambda: b"a" * 65_536, b"\x1f\x8b\x08\x08" + bytes(6)),
    _dripped("dripped-gzip", "gzip", lambda: _gzip(_PAGE)),
    _dripped("dripped-empty", "zstd", lambda: _EMPTY_ZSTD * 1_000),
)


def _long_name() -> bytes:
    packed = _gzip(_PAGE)
    return packed[:3] + b"\x08" + packed[4:10] + b"n" * 5_000_000 + b"\0" + packed[10:]


def _layers(count: int) -> bytes:
    data = _PAGE
    for _ in range(count):
        data = _gzip(data)
    return data
