"""Ledger of every request a simulated web received: the evidence for politeness.

Rows are stored in flat typed columns with interned strings, about 60 bytes per request. A row has
two monotonic times: first byte received, and header complete; gaps are measured between the latter.
They are the times of the system, where it tells, and not those of a process that may wait for a
core.
With a file, each row is also written as a JSON line and flushed before the response is sent, so
that another process can check it.

Invariants: rows are in the order in which the requests were read; a ledger that dropped rows
refuses to compute gaps.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

MAX_ROWS = 8_000_000


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One request.

    Attributes:
        first_byte_s: monotonic time of its first byte.
        complete_s: monotonic time at which its header was complete.
        at: the same time in Unix seconds, by the clock of the simulated web.
        host: host name the client asked for.
        peer, address: addresses of the client, and of the server that it connected to.
        target: path and query; empty if the request was not HTTP.
        status: response status; 0 if none.
        user_agent, if_none_match, if_modified_since: as sent; empty if absent.
    """

    first_byte_s: float
    complete_s: float
    at: float
    host: str
    peer: str
    address: str
    target: str
    status: int
    user_agent: str = ""
    if_none_match: str = ""
    if_modified_since: str = ""


@dataclass(frozen=True, slots=True)
class DelayViolation:
    """Two requests closer than allowed: `key` is the host or address, `at` the later one's time."""

    key: str
    gap_s: float
    at: float
    target: str


_TEXTS = ("host", "peer", "address", "target", "user_agent", "if_none_match", "if_modified_since")


class Ledger:
    """All requests in order; those after `max_rows` go only to the file at `path`, if any."""

    def __init__(self, path: Path | str | None = None, *, max_rows: int = MAX_ROWS) -> None:
        self.dropped = 0
        self._max_rows = max_rows
        self._first_byte_s = array("d")
        self._complete_s = array("d")
        self._at = array("d")
        self._status = array("H")
        self._texts = {name: array("I") for name in _TEXTS}
        self._numbers: dict[str, int] = {"": 0}
        self._words: list[str] = [""]
        self._file: IO[str] | None = None
        if path is not None:
            self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 (close() ends it)

    def __len__(self) -> int:
        return len(self._at)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def record(self, row: LedgerRow) -> None:
        """Add one request."""
        if self._file is not None:
            self._file.write(json.dumps(asdict(row)) + "\n")
            self._file.flush()
        if len(self._at) >= self._max_rows:
            self.dropped += 1
            return
        self._first_byte_s.append(row.first_byte_s)
        self._complete_s.append(row.complete_s)
        self._at.append(row.at)
        self._status.append(row.status)
        for name, column in self._texts.items():
            column.append(self._number(getattr(row, name)))

    @classmethod
    def read(cls, path: Path | str) -> Ledger:
        """Read the JSON lines of another process; an incomplete last line is skipped."""
        ledger = cls()
        with Path(path).open(encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n"):
                    ledger.record(LedgerRow(**json.loads(line)))
        return ledger

    def row(self, index: int) -> LedgerRow:
        """Return one request by its index."""
        texts = {name: self._words[column[index]] for name, column in self._texts.items()}
        return LedgerRow(
            first_byte_s=self._first_byte_s[index],
            complete_s=self._complete_s[index],
            at=self._at[index],
            status=self._status[index],
            **texts,
        )

    def rows(self) -> Iterator[LedgerRow]:
        """Yield all requests in order."""
        return (self.row(index) for index in range(len(self)))

    def requests(self, host: str) -> list[LedgerRow]:
        """Return the requests to a host, in order."""
        number = self._numbers.get(host)
        return [self.row(i) for i, found in enumerate(self._texts["host"]) if found == number]

    def hosts(self) -> Mapping[str, int]:
        """Return the number of requests per host."""
        counts = Counter(self._texts["host"])
        return {self._words[number]: total for number, total in counts.items()}

    def gaps(self, by: str = "host") -> Iterator[tuple[str, float, int]]:
        """Yield (host or address, gap in seconds, index of the later request) in order of time."""
        if self.dropped:
            raise RuntimeError(f"the ledger is full: {self.dropped} requests were not kept")
        latest: dict[int, float] = {}
        numbers, times = self._texts[by], self._complete_s
        for index in sorted(range(len(times)), key=times.__getitem__):
            number, complete_s = numbers[index], times[index]
            if number in latest:
                yield self._words[number], complete_s - latest[number], index
            latest[number] = complete_s

    def spacings(self, *, by: str = "host") -> dict[str, float]:
        """Return the smallest gap of every host (or `address`) with at least two requests."""
        smallest: dict[str, float] = {}
        for key, gap_s, _ in self.gaps(by):
            smallest[key] = min(gap_s, smallest.get(key, math.inf))
        return smallest

    def violations(self, *, delay_s: float, by: str = "host") -> list[DelayViolation]:
        """Return every gap of a host (or `address`) shorter than the delay, in order."""
        return [
            DelayViolation(key, gap_s, self._at[index], self._words[self._texts["target"][index]])
            for key, gap_s, index in self.gaps(by)
            if gap_s < delay_s
        ]

    def _number(self, word: str) -> int:
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = len(self._words)
            self._words.append(word)
        return number
