"""Texts of URLs as zstd frames."""

from __future__ import annotations

from typing import Final

import zstandard

from crawld.core.seen.texts import TextBlock
from crawld.errors import CorruptDatabaseError

PENDING_LEVEL: Final = 1
"""A pending text is written and read once."""

TEXT_LEVEL: Final = 3


def compressed(texts: TextBlock, level: int) -> bytes:
    """Return some texts as a frame."""
    if not texts.octets:
        return b""
    return zstandard.ZstdCompressor(level=level, write_checksum=True).compress(texts.pack())


def decompressed(frame: bytes, count: int) -> TextBlock:
    """Return the texts of a frame.

    Raises:
        CorruptDatabaseError: the frame does not hold `count` texts.
    """
    if not frame:
        return TextBlock.of_empty(count)
    try:
        texts = TextBlock.unpack(zstandard.ZstdDecompressor().decompress(frame), count)
    except (zstandard.ZstdError, ValueError) as error:
        raise CorruptDatabaseError(f"a block of URLs is damaged ({error})") from error
    if len(texts) and texts.ends[-1] != len(texts.octets):
        raise CorruptDatabaseError("a block of URLs is damaged (its lengths do not add up)")
    return texts
