"""The pages of one host of the web of look-alikes: what each shows at any time.

A page shows a text that changes by itself: equal text keys change at equal times, so a copy that
follows its original shows the same text on every day. A copy may follow late, stop following, or
show texts of its own from some day on. What a reader sees is one 64-bit key (`content_at`); two
pages are the same if and only if their keys are equal. Links, dates, counters and the page's own
path are not part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.hosts import Keys
from crawld.simweb.replica_web import hash_keys

Flags = NDArray[np.bool_]
Days = NDArray[np.float64]

NEVER = np.inf
MEDIAN_INTERVAL_DAYS = 25.0
INTERVAL_SIGMA = 1.2
LEAST_INTERVAL_DAYS = 1.0
STATIC_SHARE = 0.4
"""Share of the texts that never change."""

_INTERVAL, _NORMAL, _PHASE, _OWN, _EDIT, _MOMENT, _DRAWN = range(40, 47)
_UNIT = 2.0**-64
_BRANCHING = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePages:
    """The pages of one host, one array entry each, the root first.

    Attributes:
        paths: path of each page; unique.
        links: paths that each page links to; a copy keeps links to pages that it has not.
        text: key of its text; 0: nothing to show (a redirect).
        edit: key of a small edit, as of a price; 0: none.
        boilerplate: whether it says nothing about the page: a login wall, an error, a placeholder.
        own_from: day from which it has a text of its own, instead of a copied one.
        volatile: whether its whole text is new at every fetch.
        redirect_to: number of the host to whose same path it redirects; -1: none.
        canonical_to: number of the host that it names as canonical; -1: none.
        lag_days: days until a change of the original appears.
        frozen_day: day from which no change of the original appears.
        chrome: key of the menus around each text.
        closed: first day, and the day after the last, of a time in which every page shows a notice.
        notice: key of its text.
        drawn: whether a page shows one of two texts, drawn at each fetch; a reader takes both for
            one page.
    """

    paths: tuple[str, ...]
    links: tuple[tuple[str, ...], ...]
    text: Keys
    edit: Keys
    boilerplate: Flags
    own_from: Days
    volatile: Flags
    redirect_to: NDArray[np.int64]
    canonical_to: NDArray[np.int64]
    lag_days: float = 0.0
    frozen_day: float = NEVER
    chrome: int = 0
    closed: tuple[float, float] = (NEVER, NEVER)
    notice: int = 0
    drawn: Flags | None = None
    at: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", {path: at for at, path in enumerate(self.paths)})

    def __len__(self) -> int:
        return len(self.paths)

    @classmethod
    def of(cls, paths: Sequence[str], text: Keys, *, chrome: int = 0) -> SitePages:
        """Return pages with these texts and nothing unusual."""
        count = len(paths)
        return cls(
            paths=tuple(paths),
            links=tuple(
                tuple(paths[_BRANCHING * at + 1 : _BRANCHING * (at + 1) + 1]) for at in range(count)
            ),
            text=text.astype(np.uint64),
            edit=np.zeros(count, dtype=np.uint64),
            boilerplate=np.zeros(count, dtype=bool),
            own_from=np.full(count, NEVER),
            volatile=np.zeros(count, dtype=bool),
            redirect_to=np.full(count, -1),
            canonical_to=np.full(count, -1),
            chrome=chrome,
        )

    def only(self, which: Flags) -> SitePages:
        """Return some of the pages."""
        return replace(
            self,
            paths=tuple(path for path, one in zip(self.paths, which, strict=True) if one),
            links=tuple(links for links, one in zip(self.links, which, strict=True) if one),
            text=self.text[which],
            edit=self.edit[which],
            boilerplate=self.boilerplate[which],
            own_from=self.own_from[which],
            volatile=self.volatile[which],
            redirect_to=self.redirect_to[which],
            canonical_to=self.canonical_to[which],
            drawn=None if self.drawn is None else self.drawn[which],
        )

    def joined(self, more: SitePages) -> SitePages:
        """Return these pages and those of `more` at other paths; the rest is as here."""
        more = more.only(np.array([path not in self.at for path in more.paths], dtype=bool))
        return replace(
            self,
            paths=self.paths + more.paths,
            links=self.links + more.links,
            text=np.concatenate((self.text, more.text)),
            edit=np.concatenate((self.edit, more.edit)),
            boilerplate=np.concatenate((self.boilerplate, more.boilerplate)),
            own_from=np.concatenate((self.own_from, more.own_from)),
            volatile=np.concatenate((self.volatile, more.volatile)),
            redirect_to=np.concatenate((self.redirect_to, more.redirect_to)),
            canonical_to=np.concatenate((self.canonical_to, more.canonical_to)),
        )

    def text_at(self, host: int, day: float) -> Keys:
        """Return the key of each page's text on a day; 0: nothing to show.

        Args:
            host: number of the host, for the texts of its own.
            day: days since the start; texts have a past too.
        """
        key = self._usual_text_at(host, day)
        if self.drawn is not None and not self._is_closed(day):
            moment = hash_keys(_DRAWN, host, int(day * 86_400) & 0xFFFFFFFF, self.text)
            other = self.drawn & (moment >> np.uint64(63) > 0) & (key != 0)
            key = np.where(other, hash_keys(_DRAWN, key), key)
        return key

    def _usual_text_at(self, host: int, day: float) -> Keys:
        """Return the same; of two texts of a page always the first."""
        if self._is_closed(day):
            return np.where(self.text == 0, np.uint64(0), np.uint64(self.notice))
        return _texts_at(self, host, day, min(day - self.lag_days, self.frozen_day))

    def _is_closed(self, day: float) -> bool:
        return self.closed[0] <= day < self.closed[1]

    def content_at(self, host: int, day: float) -> Keys:
        """Return the key of what a reader sees on each page on a day; 0: nothing."""
        text = self._usual_text_at(host, day)
        key = hash_keys(_EDIT, text, self.edit, self.chrome)
        return np.where(text == 0, np.uint64(0), key)

    def says_something_at(self, day: float) -> Flags:
        """Return which pages show a text that is about the page on a day."""
        shown: Flags = (self.text != 0) & (~self.boilerplate | (self.own_from <= day))
        return shown & (not self._is_closed(day))


class SiteTexts:
    """The texts of many hosts, made at once: several times as fast as one host after the other."""

    def __init__(self, hosts: Sequence[SitePages]) -> None:
        """Take the pages of hosts 0, 1, ..."""
        self.text: Keys = np.concatenate([pages.text for pages in hosts])
        self.boilerplate: Flags = np.concatenate([pages.boilerplate for pages in hosts])
        self.own_from: Days = np.concatenate([pages.own_from for pages in hosts])
        self.volatile: Flags = np.concatenate([pages.volatile for pages in hosts])
        sizes = [len(pages) for pages in hosts]
        self._host = np.repeat(np.arange(len(hosts)), sizes)
        self._lag_days = np.repeat([pages.lag_days for pages in hosts], sizes)
        self._frozen_day = np.repeat([pages.frozen_day for pages in hosts], sizes)
        ends = np.cumsum(sizes).tolist()
        self._unusual = [
            (number, pages, slice(end - len(pages), end))
            for number, (pages, end) in enumerate(zip(hosts, ends, strict=True))
            if pages.drawn is not None or pages.closed[0] < NEVER
        ]

    def text_at(self, day: float) -> Keys:
        """Return `SitePages.text_at` of all pages, host by host."""
        seen = np.minimum(day - self._lag_days, self._frozen_day)
        texts = _texts_at(self, self._host, day, seen)
        for number, pages, place in self._unusual:
            texts[place] = pages.text_at(number, day)
        return texts


def _texts_at(
    pages: SitePages | SiteTexts, host: int | NDArray[np.int64], day: float, seen: float | Days
) -> Keys:
    """Return the key of each page's text; `seen`: the day of the original that a copy shows."""
    own = pages.own_from <= day
    base = np.where(own, hash_keys(_OWN, pages.text, host), pages.text)
    version = np.where(
        pages.boilerplate & ~own, 0, _version_at(base, np.where(own, day, seen))
    ).astype(np.int64)
    key = hash_keys(base, version.view(np.uint64))
    moment = hash_keys(_MOMENT, host, int(day * 86_400) & 0xFFFFFFFF, base)
    key = np.where(pages.volatile, moment, key)
    return np.where(pages.text == 0, np.uint64(0), key)


def _version_at(text: Keys, day: Days) -> Days:
    """Return how often each text has changed up to a day: a clock of its own per text."""
    uniform = hash_keys(_INTERVAL, text) * _UNIT
    normal = np.sqrt(-2.0 * np.log(np.maximum(hash_keys(_NORMAL, text) * _UNIT, 1e-300)))
    normal = normal * np.cos(2 * np.pi * (hash_keys(_NORMAL, _PHASE, text) * _UNIT))
    interval = np.maximum(
        LEAST_INTERVAL_DAYS, MEDIAN_INTERVAL_DAYS * np.exp(INTERVAL_SIGMA * normal)
    )
    phase = hash_keys(_PHASE, text) * _UNIT
    version: Days = np.floor(np.maximum(day, -1e6) / interval + phase)
    return np.where(uniform < STATIC_SHARE, 0.0, version)
