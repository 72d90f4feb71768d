"""Every hostile host gets an acceptable outcome, and a healthy host beside them is mirrored.

The cases that make the crawler wait run with short time limits, the others with long ones, so that
no outcome depends on the speed of the machine.
"""

import pytest

from crawld.bench.hostile_world import MAX_MEMORY_BYTES
from crawld.simweb.hostile.catalogue import CASES, FAMILIES
from tests.hostile.crawl import HEALTHY_PAGES, crawl

SHORT_S, LONG_S = 6.0, 60.0
MOST_REQUESTS = 500
"""To one hostile host: its pages, their second copies, its sitemaps, and retries."""

# Cases and groups that fail today, with the number of the finding. Whoever mends one removes it.
OPEN: dict[str, str] = {
    "robots-wildcards-unique": "1f: the page is excluded",
    "robots-wildcards-close": "1f: the page is excluded",
}
OPEN_GROUPS: dict[str, str] = {}

# Families that are crawled together: those that send much apart from each other.
TOGETHER = {
    "messages": ("messages", "connections", "redirects", "fields", "http2", "wiki_api"),
    "links": ("links", "names", "robots"),
    "markup": ("markup",),
    "styles": ("styles", "volatile"),
    "compression": ("compression", "charsets", "listings"),
    "sizes": ("sizes", "amplified"),
}


def waits(case):
    """Return whether a case may end by a time limit."""
    return "failed:timeout" in case.outcomes


def chosen(families, *, waiting):
    """Return the cases of some families that have to be right."""
    return [
        case
        for family in families
        for case in FAMILIES[family]
        if waits(case) == waiting and case.name not in OPEN
    ]


GROUPS = {
    "waiting": (chosen(FAMILIES, waiting=True), SHORT_S),
    **{name: (chosen(families, waiting=False), LONG_S) for name, families in TOGETHER.items()},
}


def assert_unharmed(found):
    """Assert what holds beside any hostile host."""
    assert len(found.healthy) == HEALTHY_PAGES
    assert found.vault == []
    assert {host: n for host, n in found.requests.items() if n > MOST_REQUESTS} == {}
    assert found.exit_code == 0, found.output[-2000:]
    assert "Traceback" not in found.output


def marked(names, reasons):
    """Return the parameters of a test, with those that fail today marked."""
    return [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=f"finding {reasons[name]}"))
        if name in reasons
        else name
        for name in names
    ]


@pytest.mark.parametrize("name", marked(GROUPS, OPEN_GROUPS))
def test_every_case_has_its_outcome(name, tmp_path):
    cases, limit_s = GROUPS[name]
    # Only large pages may wait for memory; elsewhere that would depend on the machine's speed.
    memory_bytes = MAX_MEMORY_BYTES if name == "sizes" else None
    found = crawl(tmp_path, cases, total_s=limit_s, max_memory_bytes=memory_bytes)
    assert found.wrong == {}
    assert_unharmed(found)


@pytest.mark.parametrize("name", marked(OPEN, OPEN))
def test_open_cases(name, tmp_path):
    case = CASES[name]
    found = crawl(tmp_path, [case], total_s=SHORT_S if waits(case) else LONG_S, guard_s=4 * SHORT_S)
    assert found.wrong == {}
    assert_unharmed(found)


def test_there_are_enough_cases():
    assert len(CASES) == sum(map(len, FAMILIES.values()))  # no name is used twice
    assert len(CASES) > 700
    assert OPEN.keys() <= CASES.keys()
    assert sum(len(cases) for cases, _ in GROUPS.values()) + len(OPEN) == len(CASES)
