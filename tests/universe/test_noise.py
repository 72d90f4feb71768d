"""What changes by itself is told apart from edits, also where pages can be fetched only slowly."""

from collections import Counter
from contextlib import closing
from itertools import groupby

import apsw
import pytest

from crawld.core.units import DAY_S
from crawld.simweb.site import ValidatorBehavior
from crawld.universe.plan import FaultKind, FaultPeriod, UniversePlan
from crawld.universe.run_universe import run_universe
from tests.universe.plans import plain_host

ABSENT = ValidatorBehavior.ABSENT


def visits_with_text(folder):
    """Return (page id, outcome, digest) of the visits of a universe that show a copy, in order."""
    (path,) = folder.glob("life-*/mirror.db")
    with closing(apsw.Connection(str(path))) as connection:
        return connection.execute(
            "SELECT page_id, outcome, digest FROM visit WHERE digest IS NOT NULL ORDER BY visit_id"
        ).fetchall()


def changes_and_hidden(visits):
    """Return how many visits found a change, and how many showed one that was not stored."""
    held, changes, hidden = {}, 0, 0
    for page_id, outcome, digest in visits:
        if outcome == "changed":
            changes += page_id in held
            held[page_id] = digest
        hidden += digest != held[page_id]
    return changes, hidden


@pytest.mark.parametrize(("delay_s", "fetches"), [(3.0, 2), (5.0, 3), (15.0, 3), (60.0, 3)])
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


def test_an_edit_of_a_page_that_is_visited_without_pause_is_not_taken_for_noise(tmp_path):
    # The pages are edited about as often as they are visited, 15 s apart, and a pair is 7.5 s.
    host = plain_host(3, changes_per_day=500.0, etag=ABSENT, last_modified=ABSENT, change_seed=4)
    plan = UniversePlan(1, 0.05, 7.5, (host,), (), min_revisit_s=0.0)
    result = run_universe(plan, tmp_path)
    assert result.auditor.found.violations == []
    visits = visits_with_text(tmp_path)
    changes, hidden = changes_and_hidden(visits)
    assert changes > 50
    assert hidden == 0
    # The next visits show as much as third fetches would.
    in_a_row = [len(list(each)) for _, each in groupby(page_id for page_id, *_ in visits)]
    assert sum(times > 2 for times in in_a_row) <= 5


def test_a_failed_third_fetch_leaves_no_edit_hidden(tmp_path):
    # With 10 the third fetch comes late and shows the same edit, with 19 one more.
    for change_seed in (10, 19):
        cut = FaultPeriod(FaultKind.RESET_AT_BYTE, 0.0, DAY_S, 0.4, 20)
        host = plain_host(
            3, (cut,), changes_per_day=200.0, etag=ABSENT, last_modified=ABSENT,
            change_seed=change_seed,
        )  # fmt: skip
        folder = tmp_path / str(change_seed)
        folder.mkdir()
        plan = UniversePlan(1, 0.05, 15.0, (host,), (), min_revisit_s=0.0)
        assert run_universe(plan, folder).auditor.found.violations == []
        changes, hidden = changes_and_hidden(visits_with_text(folder))
        assert changes > 5
        assert hidden == 1  # by the second fetch of a pair, until the next one
