"""What changes by itself is told apart from edits, also where pages can be fetched only slowly."""

from collections import Counter

import pytest

from crawld.universe.plan import UniversePlan
from crawld.universe.run_universe import run_universe
from tests.universe.plans import plain_host


@pytest.mark.parametrize(("delay_s", "fetches"), [(5.0, 2), (15.0, 3), (60.0, 3)])
def test_a_page_is_fetched_again_until_a_difference_proves_noise(tmp_path, delay_s, fetches):
    host = plain_host(3, changes_per_day=0.01, noise=True)
    plan = UniversePlan(1, 0.02, delay_s, (host,), ())
    path = tmp_path / "events.txt"
    with path.open("w") as events:
        result = run_universe(plan, tmp_path, event_file=events)
    assert result.auditor.found.violations == []
    lines = [line.split() for line in path.read_text().splitlines() if " request a.test " in line]
    asked = [(float(words[0]), words[3]) for words in lines]
    in_a_row, last_at = Counter(), {}
    for at_s, target in asked:
        # Later visits are no part of it.
        is_first = at_s < 13 * delay_s
        if is_first and (target == "/" or target.startswith("/wiki/")):
            in_a_row[target] += at_s - last_at.get(target, at_s) < 2.0 * delay_s
            last_at[target] = at_s
    assert list(in_a_row.values()) == [fetches] * 3
