"""Mutations of inputs that know a little of what the formats are made of."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from tests.fuzz.targets import MAX_BYTES

WORDS: Final = (
    *(b"<", b">", b"</", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"&", b"&#", b"&#x0;", b";", b"'"),
    *(b'"', b"\\", b"\0", b"\r\n", b"\n\n", b"\r", b"\t", b" ", b":", b"/", b"//", b"?", b"#"),
    *(b"%", b"%00", b"%2F", b"%zz", b"[", b"]", b"{", b"}", b",", b"=", b"@", b"..", b"*", b"$"),
    *(b"null", b"true", b"-1", b"0", b"1e999", b"NaN", b"9" * 30, b"99999-12-31T23:59:60Z"),
    *(b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc3", "\u202e".encode(), b"\xe2\x80\xa8"),
    *(b"url(", b"data:", b"javascript:", b"http://", b"xn--", b"[::1]", b"Content-Length: 5"),
)


def mutated(seeds: Sequence[bytes], draw: random.Random) -> bytes:
    """Return one of the seeds with some drawn changes, no longer than `MAX_BYTES`."""
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.choice((1, 1, 2, 4, 8, 16))):
        at = draw.randrange(len(data) + 1)
        end = min(len(data), at + draw.choice((0, 1, 1, 2, 8, 64)))
        match draw.randrange(6):
            case 0:
                data[at:at] = draw.choice(WORDS)
            case 1:
                data[at:end] = draw.choice(WORDS)
            case 2:
                del data[at:end]
            case 3:
                data[at:at] = data[at:end] * draw.choice((1, 2, 50))
            case 4:
                other = draw.choice(seeds)
                start = draw.randrange(len(other) + 1)
                data[at:end] = other[start : start + draw.randrange(200)]
            case _:
                data[at:end] = draw.randbytes(end - at)
    return bytes(data[:MAX_BYTES])
