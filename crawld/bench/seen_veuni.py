"""VEUNI over flat files: the baseline whose repositories take turns.

Source: Favoreto (UFMG), "VEUNI": URLs are divided among N repositories by their server. Cycle `id`
works on repository `id mod N`: what waited for it is sorted by server and merged with it in one
sequential pass; extracted URLs of other repositories wait in AUX. The published runs have N = 50,
and records of 45 bytes (15,713 MB for 350 million URLs). AUX is one file a cycle here, by
repository, so that it is durable with one fsync.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from crawld.bench.seen_files import KEY_BYTES, Ids, Records, make_durable
from crawld.bench.seen_web import SomeUrls, mixed
from crawld.core.seen.keys import distinct

REPOSITORIES: Final = 50
RECORD_BYTES: Final = 45

_SERVER_BITS: Final = 20


@dataclass(frozen=True, slots=True)
class _Aux:
    """A file of URLs that wait.

    Attributes:
        cycle: that wrote it.
        bounds: where each repository begins, and the last one ends.
        done: repositories that took their part.
    """

    path: Path
    cycle: int
    bounds: list[int]
    done: set[int]


class Veuni:
    """Repositories and AUX files in a folder."""

    def __init__(self, folder: Path, record_bytes: int = RECORD_BYTES) -> None:
        self._folder = folder
        self._record_bytes = record_bytes
        self._payload_bytes = record_bytes - KEY_BYTES
        self._counts = [0] * REPOSITORIES
        self._waiting: list[_Aux] = []
        self._cycle = 0

    def load(self, parts: Iterable[SomeUrls]) -> None:
        """Fill empty repositories with distinct URLs."""
        loaded: list[list[Ids]] = [[] for _ in range(REPOSITORIES)]
        for part in parts:
            keys, bounds = _divided(part)
            for repository, (start, end) in enumerate(pairwise(bounds)):
                loaded[repository].append(keys[start:end].copy())
        for repository, found in enumerate(loaded):
            ordered = np.sort(np.concatenate(found))
            self._write(repository, Records.of(ordered, self._payload_bytes))
            found.clear()

    def check(self, urls: SomeUrls) -> Ids:
        """Offer a batch; return what is new in the repository whose turn it is, each once."""
        turn = self._cycle % REPOSITORIES
        self.offer(urls)
        return self._settle(turn)

    def offer(self, urls: SomeUrls) -> None:
        """Let a batch wait."""
        keys, bounds = _divided(urls)
        path = self._folder / f"{self._cycle}.aux"
        records = Records.of(keys, self._payload_bytes)
        with path.with_suffix(".new").open("wb") as file:
            file.write(np.hstack([keys[:, None].view(np.uint8), records.payload]).data)
            make_durable(file, path)
        self._waiting.append(_Aux(path, self._cycle, bounds, set()))
        self._cycle += 1

    def settle_all(self) -> Ids:
        """Give every repository its turn without new URLs."""
        return np.concatenate([self._settle(each) for each in range(REPOSITORIES)])

    def _settle(self, repository: int) -> Ids:
        ids = distinct(self._take_waiting(repository))
        known = self._read(repository)
        new = known.new_of(ids)
        self._write(repository, known.merged(Records.of(new, self._payload_bytes)))
        return new

    def _take_waiting(self, repository: int) -> Ids:
        found = [np.zeros(0, np.uint64)]
        for aux in self._waiting:
            start, end = aux.bounds[repository : repository + 2]
            if repository in aux.done or start == end:
                continue
            aux.done.add(repository)
            size, offset = (end - start) * self._record_bytes, start * self._record_bytes
            octets = np.fromfile(aux.path, np.uint8, size, offset=offset)
            rows = octets.reshape(end - start, self._record_bytes)
            found.append(np.ascontiguousarray(rows[:, :KEY_BYTES]).view(np.uint64).ravel())
        # Every repository had a turn since.
        while self._waiting and self._cycle - self._waiting[0].cycle > REPOSITORIES:
            self._waiting.pop(0).path.unlink()
        return np.concatenate(found)

    def _read(self, repository: int) -> Records:
        with self._path(repository).open("rb") as file:
            return Records.read(file, self._counts[repository], self._payload_bytes)

    def _write(self, repository: int, records: Records) -> None:
        path = self._path(repository)
        with path.with_suffix(".new").open("wb") as file:
            records.write(file)
            make_durable(file, path)
        self._counts[repository] = len(records.keys)

    def _path(self, repository: int) -> Path:
        path = self._folder / f"{repository}.repository"
        path.touch()
        return path


def _divided(urls: SomeUrls) -> tuple[Ids, list[int]]:
    """Return the keys by repository (bits of the server, then of the URL), and its bounds."""
    server = mixed(urls.host.astype(np.uint64) + np.uint64(1))
    upper = server >> np.uint64(64 - _SERVER_BITS) << np.uint64(64 - _SERVER_BITS)
    keys = upper | urls.ids() >> np.uint64(_SERVER_BITS)
    repository = (server % np.uint64(REPOSITORIES)).astype(np.uint8)
    order = np.argsort(repository, kind="stable")
    ends = np.cumsum(np.bincount(repository, minlength=REPOSITORIES)).tolist()
    return keys[order], [0, *ends]
