"""Parameters of the simulated webs of replicas: hosts of each kind, their copies, their crawl.

Three webs of about 21,500 hosts. The values were fixed before any classifier saw the webs. A
changed value makes a different web, and results measured on the old one no longer hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class Cause(StrEnum):
    """Why a host has replicas."""

    WWW = "www"
    LOAD_BALANCING = "load_balancing"
    FRANCHISE = "franchise"
    HOSTING_MOVE = "hosting_move"
    MALICIOUS = "malicious"


@dataclass(frozen=True, slots=True)
class CopyParameters:
    """How a copy differs from its original: the means from which each copy draws its own values.

    Attributes:
        kept: share of the original's pages that the copy has.
        stale: share of its pages that show an older text.
        modified: share of its pages changed on purpose: local blocks, injected advertisements.
        renamed: share of its pages with the same text under another path.
        extra: number of its own pages, as a share of the original's.
        redirect: probability that the copy redirects to the original.
        canonical: probability that its pages name the original's as canonical.
    """

    kept: float
    stale: float
    modified: float
    renamed: float
    extra: float
    redirect: float
    canonical: float


@dataclass(frozen=True, slots=True)
class WebParameters:
    """Parameters of one web.

    Attributes:
        name: `easy`, `standard` or `hard`.
        hosts: total number of hosts; those outside all other counts are plain hosts.
        groups: number of replica groups by cause.
        copies: how the copies of each cause differ.
        crawl_median: median number of pages fetched per host, breadth first.
        crawl_sigma: sigma of that number (log-normal).
        crawl_disorder: how far the order of two crawls of one site differs, in levels.
        dynamic: mean share of a site's pages whose text differs at every fetch.
        common_paths: mean share of a site's paths that its CMS gives to all its sites.
        languages: families of language versions: same paths, different texts.
        language_free: share of their pages that are the same in every language.
        topics: communities of sites with equal texts (lyrics).
        topic_equal: probability that a community text has the same cleaned digest on a site.
        topic_same_path: probability that it has the community's usual path.
        platforms: blog platforms, each with many blogs under its domain.
        parkings: companies that park domains.
        families: companies with several sites: many equal paths, different texts.
        family_documents: maximum number of documents that a family shares word for word.
        broken: hosts that serve their hosting company's error page with status 200 on every path.
    """

    name: str
    hosts: int
    groups: Mapping[Cause, int]
    copies: Mapping[Cause, CopyParameters]
    crawl_median: float
    crawl_sigma: float
    crawl_disorder: float
    dynamic: float
    common_paths: float
    languages: int
    language_free: float
    topics: int
    topic_equal: float
    topic_same_path: float
    platforms: int
    parkings: int
    families: int
    family_documents: int
    broken: int


def scale_web(
    parameters: WebParameters,
    hosts: int,
    replicated: float | None = None,
    pages: float | None = None,
) -> WebParameters:
    """Return parameters for another number of hosts; counts of look-alikes scale with it.

    Args:
        parameters: source of all other values.
        hosts: total number of hosts.
        replicated: approximate share of hosts that are copies or have copies; None keeps it.
        pages: median number of pages fetched per host; None keeps it.
    """
    in_groups = sum(parameters.groups[cause] * size for cause, size in _HOSTS_PER_GROUP.items())
    scale = hosts / parameters.hosts
    share = scale if replicated is None else hosts * replicated / in_groups

    def of(count: int) -> int:
        return max(1, round(count * scale))

    return replace(
        parameters,
        hosts=hosts,
        crawl_median=pages or parameters.crawl_median,
        groups={cause: round(count * share) for cause, count in parameters.groups.items()},
        languages=of(parameters.languages),
        topics=of(parameters.topics),
        platforms=of(parameters.platforms),
        parkings=of(parameters.parkings),
        families=of(parameters.families),
        broken=of(parameters.broken),
    )


_HOSTS_PER_GROUP = {
    Cause.WWW: 2.0,
    Cause.LOAD_BALANCING: 3.5,
    Cause.FRANCHISE: 4.0,
    Cause.HOSTING_MOVE: 2.0,
    Cause.MALICIOUS: 3.0,
}

_GROUPS = {
    Cause.WWW: 900,
    Cause.LOAD_BALANCING: 250,
    Cause.FRANCHISE: 160,
    Cause.HOSTING_MOVE: 450,
    Cause.MALICIOUS: 350,
}

_COPIES = {
    # easy, standard, hard: kept, stale, modified, renamed, extra, redirect, canonical
    Cause.WWW: (
        CopyParameters(0.99, 0.02, 0.01, 0.00, 0.00, 0.30, 0.20),
        CopyParameters(0.97, 0.04, 0.02, 0.00, 0.01, 0.20, 0.15),
        CopyParameters(0.93, 0.08, 0.05, 0.00, 0.03, 0.12, 0.10),
    ),
    Cause.LOAD_BALANCING: (
        CopyParameters(0.98, 0.03, 0.01, 0.00, 0.01, 0.05, 0.10),
        CopyParameters(0.95, 0.06, 0.03, 0.00, 0.03, 0.03, 0.06),
        CopyParameters(0.88, 0.12, 0.08, 0.01, 0.08, 0.01, 0.03),
    ),
    Cause.FRANCHISE: (
        CopyParameters(0.92, 0.05, 0.15, 0.01, 0.05, 0.02, 0.10),
        CopyParameters(0.80, 0.10, 0.30, 0.03, 0.12, 0.01, 0.05),
        CopyParameters(0.65, 0.20, 0.45, 0.06, 0.25, 0.00, 0.03),
    ),
    Cause.HOSTING_MOVE: (
        CopyParameters(0.92, 0.15, 0.03, 0.03, 0.05, 0.30, 0.10),
        CopyParameters(0.82, 0.30, 0.06, 0.06, 0.12, 0.20, 0.06),
        CopyParameters(0.68, 0.45, 0.12, 0.12, 0.25, 0.10, 0.03),
    ),
    Cause.MALICIOUS: (
        CopyParameters(0.88, 0.10, 0.15, 0.02, 0.05, 0.00, 0.15),
        CopyParameters(0.72, 0.20, 0.30, 0.05, 0.12, 0.00, 0.10),
        CopyParameters(0.55, 0.35, 0.45, 0.10, 0.25, 0.00, 0.06),
    ),
}

_VALUES: dict[str, tuple[Any, Any, Any]] = {
    # easy, standard, hard
    "crawl_median": (60.0, 42.0, 28.0),
    "crawl_sigma": (0.7, 0.8, 0.9),
    "crawl_disorder": (0.5, 0.8, 1.1),
    "dynamic": (0.10, 0.20, 0.32),
    "common_paths": (0.20, 0.28, 0.36),
    "languages": (80, 150, 260),
    "language_free": (0.03, 0.05, 0.08),
    "topics": (15, 25, 35),
    "topic_equal": (0.10, 0.20, 0.30),
    "topic_same_path": (0.20, 0.30, 0.40),
    "platforms": (10, 15, 20),
    "parkings": (8, 10, 12),
    "families": (120, 200, 320),
    "family_documents": (2, 3, 5),
    "broken": (150, 300, 450),
}

WEBS = {
    name: WebParameters(
        name=name,
        hosts=21_500,
        groups=_GROUPS,
        copies={cause: copies[at] for cause, copies in _COPIES.items()},
        **{key: values[at] for key, values in _VALUES.items()},
    )
    for at, name in enumerate(("easy", "standard", "hard"))
}
STANDARD = WEBS["standard"]
