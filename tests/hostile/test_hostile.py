"""Every hostile host gets an acceptable outcome, and a healthy host beside them is mirrored.

The cases that make the crawler wait run with short time limits, the others with long ones, so that
no outcome depends on the speed of the machine. Each family is represented by every eighth of its
cases; `CRAWLD_HOSTILE=all` (`make torture`) runs all of them.
"""

import os

import pytest

from crawld.bench.hostile_world import MAX_MEMORY_BYTES
from crawld.simweb.hostile.catalogue import CASES, FAMILIES, SOCKET_FAMILIES
from tests.hostile.crawl import HEALTHY_PAGES, crawl

STRIDE = 1 if os.environ.get("CRAWLD_HOSTILE") == "all" else 8
SHORT_S, LONG_S = 6.0, 120.0
MOST_REQUESTS = 500
"""To one hostile host: its pages, their second copies, its sitemaps, and retries."""

# Families that are crawled together: those that send much apart from each other.
TOGETHER = {
    "messages": ("messages", "connections", "redirects", "fields", "http2", "wiki_api", "framing"),
    "links": ("links", "names", "robots", "everywhere", "pace"),
    "markup": ("markup", "styles", "volatile"),
    "compression": ("compression", "charsets", "listings"),
    "sizes": ("sizes", "amplified"),
}


def waits(case):
    """Return whether a case may end by a time limit, that of its robots.txt included."""
    return "failed:timeout" in case.outcomes or (case.family == "robots" and case.wait > 2.0)


def representatives(family):
    """Return the cases that stand for a family."""
    cases = SOCKET_FAMILIES[family]
    return [case for at, case in enumerate(cases) if case.quick or at % STRIDE == 0]


def chosen(families, *, waiting):
    """Return the cases of some families that wait, or those that do not."""
    return [
        case for family in families for case in representatives(family) if waits(case) == waiting
    ]


GROUPS = {
    "waiting": (chosen(SOCKET_FAMILIES, waiting=True), SHORT_S),
    **{name: (chosen(families, waiting=False), LONG_S) for name, families in TOGETHER.items()},
}


@pytest.mark.parametrize("name", GROUPS)
def test_every_case_has_its_outcome(name, tmp_path):
    cases, limit_s = GROUPS[name]
    # Only large pages may wait for memory; elsewhere that would depend on the machine's speed.
    memory_bytes = MAX_MEMORY_BYTES if name == "sizes" else None
    found = crawl(tmp_path, cases, total_s=limit_s, max_memory_bytes=memory_bytes)
    assert found.wrong == {}
    assert len(found.healthy) == HEALTHY_PAGES
    assert found.vault == []
    assert {host: n for host, n in found.requests.items() if n > MOST_REQUESTS} == {}
    assert found.exit_code == 0, found.output[-2000:]
    assert "Traceback" not in found.output


def test_there_are_enough_cases():
    assert len(CASES) == sum(map(len, FAMILIES.values()))  # no name is used twice
    assert len(CASES) > 700
    names = [case.name for cases, _ in GROUPS.values() for case in cases]
    assert len(names) == len(set(names)) > 160
    assert {CASES[name].family for name in names} == set(SOCKET_FAMILIES)
