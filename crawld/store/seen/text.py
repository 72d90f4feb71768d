"""Texts and checks of known URLs, by number, a few thousand in a row."""

from __future__ import annotations

from typing import Final

import apsw
import numpy as np

from crawld.core.seen.keys import Checks
from crawld.core.seen.run import Positions
from crawld.core.seen.texts import TextBlock
from crawld.errors import CorruptDatabaseError
from crawld.store.seen.block import TEXT_LEVEL, compressed, decompressed

ROW_TEXTS: Final = 8_192
"""About 600 KB of text: larger rows compress no better."""

_CHECK: Final = np.dtype("<u4")


class StoredTexts:
    """Texts and checks of a repository's URLs; reads rows only as they are needed."""

    def __init__(self, connection: apsw.Connection, repository: int) -> None:
        self._connection = connection
        self._repository = repository
        self._rows = connection.execute(
            "SELECT seen_text_id, first_number FROM seen_text WHERE repository = ?"
            " ORDER BY first_number",
            (repository,),
        ).fetchall()
        self._first = np.array([first for _, first in self._rows], np.int64)

    def checks(self, numbers: Positions) -> Checks:
        """Return the checks of some numbers.

        Raises:
            CorruptDatabaseError: a row is damaged, or too short.
        """
        row = np.searchsorted(self._first, numbers, side="right") - 1
        touched = np.flatnonzero(np.bincount(row, minlength=len(self._rows)))
        checks = [self._checks(number) for number in touched.tolist()]
        lengths = np.array([len(each) for each in checks], np.int64)
        # Where the number 0 would be if the row's checks began with it.
        base = np.zeros(len(self._rows), np.int64)
        base[touched] = np.cumsum(lengths) - lengths - self._first[touched]
        end = np.zeros(len(self._rows), np.int64)
        end[touched] = self._first[touched] + lengths
        if (numbers >= end[row]).any():
            raise CorruptDatabaseError("a check of a seen URL is missing")
        found: Checks = np.concatenate([np.zeros(0, np.uint32), *checks])[numbers + base[row]]
        return found

    def _checks(self, row: int) -> Checks:
        urls, octets = self._connection.execute(
            "SELECT urls, checks FROM seen_text WHERE seen_text_id = ?", (self._rows[row][0],)
        ).get
        if len(octets) != urls * _CHECK.itemsize:
            raise CorruptDatabaseError("a row of seen URLs is damaged")
        return np.frombuffer(octets, _CHECK)

    def read(self, numbers: Positions) -> list[bytes]:
        """Return the texts of some numbers."""
        found = [b""] * len(numbers)
        row = np.searchsorted(self._first, numbers, side="right") - 1
        for number in np.unique(row).tolist():
            of = np.flatnonzero(row == number)
            block, inside = self._block(number), numbers[of] - self._first[number]
            if (inside >= len(block)).any():
                raise CorruptDatabaseError("a text of a seen URL is missing")
            for position, text in zip(of.tolist(), block.take(inside), strict=True):
                found[position] = text
        return found

    def _block(self, number: int) -> TextBlock:
        urls, frame = self._connection.execute(
            "SELECT urls, texts FROM seen_text WHERE seen_text_id = ?", (self._rows[number][0],)
        ).get
        return decompressed(frame, urls)


def append(
    connection: apsw.Connection,
    repository: int,
    first_number: int,
    checks: Checks,
    texts: TextBlock,
) -> None:
    """Store the checks and texts of new URLs, which are numbered from `first_number` on."""
    octets = checks.astype(_CHECK, copy=False).tobytes()
    last = connection.execute(
        "SELECT seen_text_id, urls, checks, texts FROM seen_text WHERE repository = ?"
        " ORDER BY first_number DESC LIMIT 1",
        (repository,),
    ).fetchone()
    if last and last[1] + len(texts) <= ROW_TEXTS:
        row, urls, before, frame = last
        block = TextBlock.join([decompressed(frame, urls), texts])
        connection.execute(
            "UPDATE seen_text SET urls = ?, checks = ?, texts = ? WHERE seen_text_id = ?",
            (len(block), before + octets, compressed(block, TEXT_LEVEL), row),
        )
        return
    for start in range(0, len(texts), ROW_TEXTS):
        end = min(start + ROW_TEXTS, len(texts))
        connection.execute(
            "INSERT INTO seen_text (repository, first_number, urls, checks, texts)"
            " VALUES (?, ?, ?, ?, ?)",
            (
                repository,
                first_number + start,
                end - start,
                octets[start * _CHECK.itemsize : end * _CHECK.itemsize],
                compressed(texts.part(start, end), TEXT_LEVEL),
            ),
        )
