"""Read what was seen: the mark of a URL, and all URLs in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apsw
import numpy as np

from crawld.core.seen.event import SeenMark, first_mark, last_mark
from crawld.core.seen.keys import REPOSITORIES, Keys
from crawld.core.seen.run import Run, marks_in, numbers_of
from crawld.core.seen.texts import TextBlock, encoded
from crawld.store.seen import chunk, pending
from crawld.store.seen.block import decompressed
from crawld.store.seen.seen import SeenFile
from crawld.store.seen.text import StoredTexts


def marks(
    connection: apsw.Connection, file: SeenFile, urls: Sequence[str]
) -> list[SeenMark | None]:
    """Return what is known of each URL, also of those that wait; None: it was never seen.

    It reads all that waits in the repositories of these URLs: it is for few of them.
    """
    keys = file.keys(TextBlock.of(urls))
    found: list[SeenMark | None] = [None] * len(urls)
    for repository in np.unique(keys.repository).tolist():
        at = np.flatnonzero(keys.repository == repository)
        texts = [encoded(urls[i]) for i in at.tolist()]
        known = _known(connection, repository, keys.key[at])
        events = _events(connection, repository, keys.key[at])
        for position, text in zip(at.tolist(), texts, strict=True):
            told = np.array(events.get(text, []), np.uint8)
            mark = known.get(text)
            if mark is None:
                mark = first_mark(told) if len(told) else None
            else:
                last = last_mark(told)
                mark = mark if last is None else last
            found[position] = None if mark is None else SeenMark(mark)
    return found


def _known(connection: apsw.Connection, repository: int, keys: Keys) -> dict[bytes, int]:
    """Return the marks of the texts in a repository's run that have one of some keys."""
    run = chunk.load(connection, repository, keys).run
    at = np.flatnonzero(np.isin(run.keys, keys))
    if not len(at):
        return {}
    texts = StoredTexts(connection, repository).read(numbers_of(run.refs[at]))
    return dict(zip(texts, marks_in(run.refs[at]).tolist(), strict=True))


def _events(connection: apsw.Connection, repository: int, keys: Keys) -> dict[bytes, list[int]]:
    """Return the events of pending texts that have one of some keys, in order of arrival."""
    events: dict[bytes, list[int]] = {}
    for waiting in (
        pending.read(connection, repository),
        pending.read_undivided(connection, repository),
    ):
        at = np.flatnonzero(np.isin(waiting.keys, keys))
        for text, event in zip(waiting.texts.take(at), waiting.events[at].tolist(), strict=True):
            events.setdefault(text, []).append(event)
    return events


def urls_with_marks(connection: apsw.Connection) -> Iterator[tuple[str, SeenMark]]:
    """Yield every settled URL with its mark, by repository in order of discovery."""
    for repository in range(REPOSITORIES):
        marks = _marks_by_number(connection, repository)
        for first, count, frame in connection.execute(
            "SELECT first_number, urls, texts FROM seen_text WHERE repository = ?"
            " ORDER BY first_number",
            (repository,),
        ):
            texts = decompressed(frame, count).decoded()
            for text, mark in zip(texts, marks[first : first + count].tolist(), strict=True):
                yield text, SeenMark(mark)


def _marks_by_number(connection: apsw.Connection, repository: int) -> np.ndarray:
    """Return the mark of each URL of a repository, by its number; a byte each."""
    marks = np.zeros(chunk.known(connection, repository), np.uint8)
    for (entries,) in connection.execute(
        "SELECT entries FROM seen_chunk WHERE repository = ?", (repository,)
    ):
        refs = Run.unpack(entries).refs
        marks[numbers_of(refs)] = marks_in(refs)
    return marks
