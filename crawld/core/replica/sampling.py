"""Which pages at rest of a replica to compare next, and when: a part of the visits that they save.

A copy that begins to differ is seen by a sample. The more is sampled, the sooner it is seen, and
the less is saved: with `r` samples a day, of which each meets a differing page with probability
`f`, it takes `1 / (r · f)` days. If the pages would get `s` visits a day, those that differ miss
`s · f` of them, so that a section that begins to differ at a rate `h` costs
`r + w · h · s · f / (r · f)` visits a day: least at `r = √(w · h · s)`. So a small section is
sampled more, by its share, than a large one (`samples_per_day`), and all of them the more often
copies begin to differ (`sampling_effort`): two names of one machine seldom do, since they show the
same files. Figures: `crawld lab sampling`.

Source: allocation by the square root, as in Neyman 1934, "On the two different aspects of the
representative method".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, sqrt
from typing import Final, NamedTuple

from crawld.core.replica.sections import ReplicaPage, rank_of
from crawld.core.units import DAY_S

ROOT_FACTOR: Final = 0.4
"""Samples of a section in a day, as a multiple of the square root of the visits that its resting
pages save in a day, where nothing is known of how often copies begin to differ ..."""

LEAST_SHARE: Final = 0.06
"""... and at least this share of them, so that a tenth of a large section is seen in time ..."""

MOST_SHARE: Final = 0.25
"""... and at most this share: a copy of few pages would be visited as if none of them rested."""

LEAST_EFFORT, MOST_EFFORT = 0.85, 2.5
"""Factors of the samples where copies never begin to differ, or often."""

LEAST_EFFORT_OF_ONE_MACHINE: Final = 0.5
"""The least for names of one machine (`owners.name_one_machine`)."""

RETURNS_S: Final = 30 * DAY_S
"""Time in which the replicas count of which a section returned."""

_PRIOR_REPLICAS: Final = 50.0
"""So many replicas, observed for `RETURNS_S`, are added to those of the mirror ..."""

_PRIOR_RETURNED, _PRIOR_RETURNED_OF_ONE_MACHINE = 1.0, 0.25
"""... of which one returned, or a quarter of one among names of one machine."""

ENOUGH_SAMPLED: Final = 11.0
"""Most pages of a section that are sampled in a day: of a tenth that differs, 22 pages in two days
show one with a probability of 90 %."""

SHORTEST_SAMPLING_S: Final = 3_600.0
LONGEST_SAMPLING_S: Final = 1.25 * DAY_S
"""A copy that differs as a whole is seen by its next sample: less than two days later ..."""

DEAR: Final = 1.7
"""... unless that takes so many times the share of the saved visits: a copy of few pages would be
visited as if none of them rested."""

REPORTED_AT_ONCE: Final = 4
"""Most reported pages of a replica that are compared in one run: two that differ let the test of
their section begin, and a source that is wrong has lost its trust by then."""

REPORTED_WAIT_S: Final = 6 * 3_600.0
"""So long a reported page waits for a visit of its twin, which may tell of the same change."""

REPORTS_SHARE: Final = 0.04
"""Requests for the files of a sitemap while pages rest, as a share of the visits that they save."""


class Sampling(NamedTuple):
    """How many resting pages of each section to compare next, and when to do so again."""

    counts: tuple[int, ...]
    interval_s: float


def sampling_effort(observed: float, returned: int, *, one_machine: bool = False) -> float:
    """Return by which factor more is sampled than usually, since copies begin to differ.

    Args:
        observed: replicas of which pages rest, each by the part of the last `RETURNS_S` in which
            they did.
        returned: those of which a section began to differ in that time.
        one_machine: whether these are names of one machine.

    >>> sampling_effort(0.0, 0), round(sampling_effort(100.0, 8), 2), sampling_effort(1_000.0, 0)
    (1.0, 1.73, 0.85)
    >>> round(sampling_effort(0.0, 0, one_machine=True), 2)
    0.5
    """
    prior = _PRIOR_RETURNED_OF_ONE_MACHINE if one_machine else _PRIOR_RETURNED
    least = LEAST_EFFORT_OF_ONE_MACHINE if one_machine else LEAST_EFFORT
    usual = _PRIOR_RETURNED / _PRIOR_REPLICAS
    found = (returned + prior) / (observed + _PRIOR_REPLICAS)
    return min(max(sqrt(found / usual), least), MOST_EFFORT)


def samples_per_day(saved_visits: float, effort: float = 1.0) -> float:
    """Return how many resting pages of a section are sampled in a day.

    Args:
        saved_visits: visits that they would get together in a day.
        effort: factor (`sampling_effort`).

    >>> [round(samples_per_day(visits), 2) for visits in (1.0, 16.0, 100.0, 400.0)]
    [0.25, 1.6, 6.0, 11.0]
    """
    least = max(ROOT_FACTOR * sqrt(saved_visits), LEAST_SHARE * saved_visits)
    return min(effort * least, MOST_SHARE * saved_visits, ENOUGH_SAMPLED)


def next_sampling(
    per_day: Sequence[float], *, late_s: float, least: int, most: int, place: float
) -> Sampling:
    """Return the next sampling of a replica's resting pages.

    A sampling that comes late takes the pages of the time that was missed too.

    Args:
        per_day: samples of each section in a day (`samples_per_day`).
        late_s: time since the sampling was due.
        least: pages to sample at least, of all sections together.
        most: pages to sample at most.
        place: a random number, 0 to 1: which section a part of a page falls to.

    >>> next_sampling([3.0], late_s=0.0, least=1, most=8, place=0.5)
    Sampling(counts=(1,), interval_s=28800.0)
    >>> next_sampling([9.0, 3.0], late_s=36_000.0, least=1, most=8, place=0.5)
    Sampling(counts=(5, 1), interval_s=7200.0)
    """
    total = sum(per_day)
    often = max(total, min(DAY_S / LONGEST_SAMPLING_S, DEAR * total))
    interval_s = DAY_S / often if often > 0.0 else LONGEST_SAMPLING_S
    interval_s = max(interval_s, SHORTEST_SAMPLING_S)
    wanted = min(max(total * (interval_s + late_s) / DAY_S, least, 1.0), most)
    counts, before, up_to = [], 0, 0.0
    for one in per_day:
        up_to += wanted * (one / total if total > 0.0 else 1.0 / len(per_day))
        # A sum of rounded parts must not lose a page.
        after = floor(up_to + place + 1e-9)
        counts.append(after - before)
        before = after
    return Sampling(tuple(counts), interval_s)


def longest_report_pause_s(saved_visits: float, files: int) -> float:
    """Return the longest pause between two requests for a file of a sitemap while pages rest.

    A sitemap is asked ever less often while nothing changes, but it tells when a copy begins to
    differ: once a day, unless that costs more than `REPORTS_SHARE` of the visits saved in a day.

    >>> longest_report_pause_s(100.0, 1) / 3_600.0, longest_report_pause_s(5.0, 1) / 3_600.0
    (24.0, 120.0)
    """
    return DAY_S * max(1.0, files / max(REPORTS_SHARE * saved_visits, 1e-9))


class ReportedPage(NamedTuple):
    """A page at rest of which a source of its host reports a change since its last visit.

    Attributes:
        changed_at: time of the reported change, Unix seconds.
        heard_at: when it was first reported.
        twin_changed: whether the twin has changed since the last comparison.
        twin_visited_at: time of the last visit of the twin.
    """

    page_id: int
    changed_at: float
    heard_at: float
    twin_changed: bool
    twin_visited_at: float


def reported_to_sample(pages: Iterable[ReportedPage], now: float) -> list[int]:
    """Return the reported pages to compare now: those that seem to have changed without their twin.

    A copy that is kept up to date reports what its original shows too: that is no reason.

    >>> alone = ReportedPage(1, 10.0, 20.0, False, twin_visited_at=30.0)
    >>> reported_to_sample([alone, alone._replace(page_id=2, twin_changed=True)], 40.0)
    [1]
    """
    suspect = [
        page
        for page in pages
        if not page.twin_changed
        and (page.twin_visited_at >= page.changed_at or now - page.heard_at >= REPORTED_WAIT_S)
    ]
    suspect.sort(key=lambda page: (page.heard_at, page.page_id))
    return [page.page_id for page in suspect[:REPORTED_AT_ONCE]]


def pages_to_sample(pages: Sequence[ReplicaPage], count: int, seed: int) -> list[int]:
    """Return resting pages to compare next: half of them with a changed twin, if there are any.

    The others are drawn from the quarter that was not compared for longest, since a copy may change
    on its own: no page waits for chance alone, and a copy cannot foresee the next.
    """
    drawn = sorted(pages, key=lambda page: rank_of(page.page_id, seed))
    changed = [page for page in drawn if page.twin_changed][: (count + 1) // 2]
    oldest = sorted(page.compared_at for page in pages)[len(pages) // 4] if pages else 0.0
    by_age = sorted(drawn, key=lambda page: page.compared_at > oldest)
    return list(dict.fromkeys(page.page_id for page in (*changed, *by_age)))[:count]
