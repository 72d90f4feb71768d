"""How many pages of a mirror the edit of a template may change, before its pages are listed.

Each function returns sizes that are equally likely, so that a draw is one of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

LIKELY_SIZES: Final = 32
"""Sizes that stand for a distribution."""

PRIOR_RATIOS: Final = 8
MAX_RATIOS: Final = 40
"""Shares that stand for the prior, and the most that were learned of each."""

UNNAMED_USES: Final = 3.0
"""The most pages of a template that a wiki's list of all that are used twice does not name."""

LISTED_AT_ONCE: Final = 500
"""A list of fewer titles names all that are used twice."""


class LikelySizes:
    """Sizes of the templates and files of one wiki, in pages of the mirror."""

    def __init__(
        self,
        listed: Mapping[str, int],
        uses: Mapping[str, int],
        *,
        copies: int,
        articles: int,
    ) -> None:
        """Create it.

        Args:
            listed: pages of the mirror by title, as last listed.
            uses: pages of the whole wiki by title, as the wiki says; empty: it said nothing.
            copies: pages of the mirror that belong to the wiki, at least 1.
            articles: content pages of the wiki; 0: not known.
        """
        self._listed, self._uses, self._copies = listed, uses, float(copies)
        self._share = min(copies / articles, 1.0) if articles else 0.0
        both = [title for title in listed if uses.get(title)][-MAX_RATIOS:]
        self._ratios = [min(listed[title] / uses[title], 1.0) for title in both]

    def of(self, title: str) -> float | list[float]:
        """Return how many pages a template affects; if it is not known, equally likely numbers."""
        if title in self._listed:
            return float(self._listed[title])
        if title in self._uses:
            sizes = by_uses(self._uses[title], self._ratios, self._share)
            return [min(size, self._copies) for size in sizes]
        namespace = title.partition(":")[0]
        alike = [pages for other, pages in self._listed.items() if _is_in(namespace, other)]
        return like_others(alike, min(self._most_unnamed(namespace), self._copies))

    def of_any(self) -> list[float]:
        """Return equally likely numbers of pages of a template that was never listed."""
        named = [title for title in self._uses if title not in self._listed]
        if not named:
            return like_others(list(self._listed.values()), self._copies)
        step = max(len(named) // LIKELY_SIZES, 1)
        sizes = (self.of(title) for title in named[::step])
        return [each for size in sizes if isinstance(size, list) for each in size]

    def _most_unnamed(self, namespace: str) -> float:
        """Return the most pages of a template of a namespace that the survey does not name."""
        named = [uses for title, uses in self._uses.items() if _is_in(namespace, title)]
        if not self._uses:
            return self._copies
        return UNNAMED_USES if len(named) < LISTED_AT_ONCE else max(min(named), UNNAMED_USES)


def _is_in(namespace: str, title: str) -> bool:
    return title.partition(":")[0] == namespace


def like_others(others: Sequence[float], most: float) -> list[float]:
    """Return the likely sizes of a template of which nothing is known.

    Its size is as likely to lie between any two of the sizes of others, or beyond them; within such
    a part any order of magnitude is as likely.

    Args:
        others: sizes of templates, in pages. most: the largest size, at least 1.

    >>> [round(size) for size in like_others([], 100.0)][::8]
    [1, 3, 11, 34]
    >>> sum(size > 11.0 for size in like_others([10.0] * 7, 100.0))
    4

    Source: Hill's assumption A(n), Hill 1968.
    """
    within = [math.log(min(max(size, 1.0), most)) for size in others]
    edges = np.array([0.0, *sorted(within), math.log(max(most, 1.0))])
    middles = (np.arange(LIKELY_SIZES) + 0.5) / LIKELY_SIZES
    places = np.interp(middles * (len(edges) - 1), np.arange(len(edges)), edges)
    return [min(float(size), most) for size in np.exp(places)]


def by_uses(uses: float, ratios: Sequence[float], least: float) -> list[float]:
    """Return the likely sizes of a template that so many pages of the whole wiki use.

    Args:
        uses: pages of the wiki that use it.
        ratios: shares of the uses of other templates that are pages of the mirror, in [0, 1].
        least: share of the pages of the wiki that are mirrored, in [0, 1]. A part of a wiki is
            about something, so a template that is edited there is used there oftener.

    >>> by_uses(200.0, [], 1.0) == [200.0] * PRIOR_RATIOS
    True
    >>> min(by_uses(200.0, [], 0.5)), sum(by_uses(200.0, [0.5] * 3, 0.9)) / 32
    (106.25, 122.5)
    """
    middles = (np.arange(PRIOR_RATIOS) + 0.5) / PRIOR_RATIOS
    prior = least + (1.0 - least) * middles
    learned = np.repeat(np.asarray(ratios, np.float64), PRIOR_RATIOS)
    return [uses * float(ratio) for ratio in (*prior, *learned)]
