"""Texts of known URLs, by number, a few thousand in a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import apsw
import numpy as np

from crawld.core.seen.judge import Flags
from crawld.core.seen.run import Positions
from crawld.core.seen.texts import TextBlock, differing
from crawld.errors import CorruptDatabaseError
from crawld.store.seen.block import TEXT_LEVEL, compressed, decompressed

ROWS_TOGETHER: Final = 32
"""Rows that are compared at a time, about 20 MB of text: of one row few texts have one length."""

ROW_TEXTS: Final = 8_192
"""About 600 KB of text: larger rows compress no better."""


class StoredTexts:
    """Texts of a repository's URLs; reads rows only as they are needed, some at a time."""

    def __init__(self, connection: apsw.Connection, repository: int) -> None:
        self._connection = connection
        self._repository = repository
        self._rows = connection.execute(
            "SELECT seen_text_id, first_number FROM seen_text WHERE repository = ?"
            " ORDER BY first_number",
            (repository,),
        ).fetchall()
        self._first = np.array([first for _, first in self._rows], np.int64)

    def differ(self, numbers: Positions, texts: TextBlock, at: Positions) -> Flags:
        """Return for each number whether its text differs from the one at a position."""
        differs = np.zeros(len(numbers), bool)
        for block, of, inside in self._blocks(numbers):
            differs[of] = differing(block, inside, texts, at[of])
        return differs

    def read(self, numbers: Positions) -> list[bytes]:
        """Return the texts of some numbers."""
        found = [b""] * len(numbers)
        for block, of, inside in self._blocks(numbers):
            for position, text in zip(of.tolist(), block.take(inside), strict=True):
                found[position] = text
        return found

    def _blocks(self, numbers: Positions) -> Iterator[tuple[TextBlock, Positions, Positions]]:
        """Yield some rows, the positions in `numbers` that they hold, and where those are."""
        row = np.searchsorted(self._first, numbers, side="right") - 1
        order = np.argsort(row, kind="stable")
        begins = np.flatnonzero(np.diff(row[order], prepend=-1)).tolist()
        for first in range(0, len(begins), ROWS_TOGETHER):
            starts = begins[first : first + ROWS_TOGETHER]
            of = order[starts[0] : [*begins, len(order)][first + len(starts)]]
            touched = row[order[starts]]
            blocks = [self._block(number) for number in touched.tolist()]
            lengths = np.array([len(block) for block in blocks])
            of_block = np.searchsorted(touched, row[of])
            inside = numbers[of] - self._first[row[of]]
            if (inside >= lengths[of_block]).any():
                raise CorruptDatabaseError("a text of a seen URL is missing")
            yield TextBlock.join(blocks), of, inside + (np.cumsum(lengths) - lengths)[of_block]

    def _block(self, number: int) -> TextBlock:
        urls, frame = self._connection.execute(
            "SELECT urls, texts FROM seen_text WHERE seen_text_id = ?", (self._rows[number][0],)
        ).get
        return decompressed(frame, urls)


def append(
    connection: apsw.Connection, repository: int, first_number: int, texts: TextBlock
) -> None:
    """Store the texts of new URLs, which are numbered from `first_number` on."""
    last = connection.execute(
        "SELECT seen_text_id, first_number, urls, texts FROM seen_text WHERE repository = ?"
        " ORDER BY first_number DESC LIMIT 1",
        (repository,),
    ).fetchone()
    if last and last[2] + len(texts) <= ROW_TEXTS:
        row, _, urls, frame = last
        block = TextBlock.join([decompressed(frame, urls), texts])
        connection.execute(
            "UPDATE seen_text SET urls = ?, texts = ? WHERE seen_text_id = ?",
            (len(block), compressed(block, TEXT_LEVEL), row),
        )
        return
    for start in range(0, len(texts), ROW_TEXTS):
        part = texts.part(start, min(start + ROW_TEXTS, len(texts)))
        connection.execute(
            "INSERT INTO seen_text (repository, first_number, urls, texts) VALUES (?, ?, ?, ?)",
            (
                repository,
                first_number + start,
                len(part),
                compressed(part, TEXT_LEVEL),
            ),
        )
