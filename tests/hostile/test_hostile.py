"""Every hostile host gets an acceptable outcome, and a healthy host beside them is mirrored.

The cases that make the crawler wait run with short time limits, the others with long ones, so that
no outcome depends on the speed of the machine.
"""

import pytest

from crawld.simweb.hostile.catalogue import CASES, FAMILIES
from tests.hostile.crawl import HEALTHY_PAGES, crawl

SHORT_S, LONG_S = 6.0, 60.0
GROUP = 40
MOST_REQUESTS = 400
"""To one hostile host: its pages, their second copies, its sitemaps, and retries."""

# Cases that fail today, with the part of the issue that mends them. Whoever mends one removes it.
OPEN: dict[str, str] = {}


def waits(case):
    """Return whether a case may end by a time limit."""
    return any(outcome == "failed:timeout" for outcome in case.outcomes)


def groups():
    """Yield (name, cases, limit) of each group."""
    for family, cases in FAMILIES.items():
        for kind, limit_s in (("waiting", SHORT_S), ("computing", LONG_S)):
            chosen = [
                case
                for case in cases
                if waits(case) == (kind == "waiting") and case.name not in OPEN
            ]
            for first in range(0, len(chosen), GROUP):
                yield f"{family}-{kind}-{first // GROUP}", chosen[first : first + GROUP], limit_s


GROUPS = {name: (cases, limit_s) for name, cases, limit_s in groups()}


def assert_unharmed(found):
    """Assert what holds beside any hostile host."""
    assert len(found.healthy) == HEALTHY_PAGES
    assert found.vault == []
    assert {host: n for host, n in found.requests.items() if n > MOST_REQUESTS} == {}
    assert found.exit_code == 0, found.output[-2000:]
    assert "Traceback" not in found.output


@pytest.mark.parametrize("name", GROUPS)
def test_every_case_has_its_outcome(name, tmp_path):
    cases, limit_s = GROUPS[name]
    found = crawl(tmp_path, cases, total_s=limit_s)
    assert found.wrong == {}
    assert_unharmed(found)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=finding))
        for name, finding in OPEN.items()
    ],
)
def test_open_cases(name, tmp_path):
    case = CASES[name]
    found = crawl(tmp_path, [case], total_s=SHORT_S if waits(case) else LONG_S, guard_s=4 * SHORT_S)
    assert found.wrong == {}
    assert_unharmed(found)


def test_there_are_enough_cases():
    assert len(CASES) == sum(map(len, FAMILIES.values()))  # no name is used twice
    assert len(CASES) > 700
    assert OPEN.keys() <= CASES.keys()
