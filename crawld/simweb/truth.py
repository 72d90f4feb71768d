"""True freshness of a mirror, computed from the site that was mirrored.

A copy is fresh if its page has not changed since it was fetched. Its age is the time since the
first change it missed; 0 while fresh. A page without a copy is stale, and its age counts from the
site's start. Means are over all pages of the site with equal weights.

Source: Cho, Garcia-Molina 2003, "Effective Page Refresh Policies for Web Crawlers", TODS 28(4),
section 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crawld.simweb.change_process import next_change
from crawld.simweb.site import SimSite


@dataclass(frozen=True, slots=True)
class MirrorFreshness:
    """Freshness of a mirror at one time.

    Attributes:
        pages: number of pages of the site.
        copied: pages with a copy.
        fresh: pages with a current copy.
        mean_age_s: mean age over all pages, seconds.
    """

    pages: int
    copied: int
    fresh: int
    mean_age_s: float

    @property
    def freshness(self) -> float:
        """Share of pages with a current copy, [0, 1]."""
        return self.fresh / self.pages


@dataclass(frozen=True, slots=True)
class MeanFreshness:
    """Freshness of a mirror over a period: time averages of freshness, [0, 1], and age, seconds."""

    freshness: float
    age_s: float


def freshness_by_fetch_time(
    site: SimSite, copied_at: Mapping[str, float], now: float
) -> MirrorFreshness:
    """Compute the freshness at `now` from the time of each URL's (or path's) last fetch.

    URLs that are not pages are ignored; of several URLs of a page (mirror hosts) the latest counts.
    """
    latest: dict[int, float] = {}
    for url, at in copied_at.items():
        page = site.page_of(url)
        if page is not None:
            latest[page] = max(at, latest.get(page, at))
    missed = {page: next_change(site.changes_of(page), at) for page, at in latest.items()}
    pages = site.graph.pages
    fresh = sum(missed_at > now for missed_at in missed.values())
    age_s = sum(max(0.0, now - missed_at) for missed_at in missed.values())
    age_s += (pages - len(missed)) * max(0.0, now - site.start_at)
    return MirrorFreshness(pages, len(missed), fresh, age_s / pages)


def mean_freshness(
    site: SimSite, visits: Mapping[str, Sequence[float]], *, start: float, end: float
) -> MeanFreshness:
    """Compute the exact mean freshness and age over [start, end) from the times of all visits.

    The visits of a URL (or path) may be in any order.

    Raises:
        ValueError: the period is empty or begins before the site.
    """
    if not site.start_at <= start < end:
        raise ValueError("the period must not be empty or begin before the site")
    visit_times: dict[int, list[float]] = {}
    for url, times in visits.items():
        page = site.page_of(url)
        if page is not None:
            visit_times.setdefault(page, []).extend(times)
    fresh_s = age_s2 = 0.0
    for page in range(site.graph.pages):
        page_fresh_s, page_age_s2 = _integrate(
            site, page, sorted(visit_times.get(page, ())), start, end
        )
        fresh_s += page_fresh_s
        age_s2 += page_age_s2
    span = (end - start) * site.graph.pages
    return MeanFreshness(fresh_s / span, age_s2 / span)


def _integrate(
    site: SimSite, page: int, visits: list[float], start: float, end: float
) -> tuple[float, float]:
    """Return the fresh seconds of a page in [start, end) and the integral of its age."""
    changes = site.changes_of(page)
    fresh_s = age_s2 = 0.0
    stale_from = site.start_at
    copied = site.start_at
    for until in (*visits, end):
        begin, finish = max(copied, start), min(until, end)
        if finish > begin:
            turned = min(max(stale_from, begin), finish)
            fresh_s += turned - begin
            if finish > stale_from:
                age_s2 += ((finish - stale_from) ** 2 - (turned - stale_from) ** 2) / 2
        copied, stale_from = until, next_change(changes, until)
    return fresh_s, age_s2
