"""Of visits in a row that say the same of a page, the first and the last stay."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawld.core.page import Failure, Outcome, PageState
from crawld.store import doctor, visit, visit_log, visit_thinning
from tests.unit.store.rows import NOW, changed, discover_in_full, found, opened_file, unlike

KINDS = (
    unlike(0, Outcome.UNCHANGED, cleaned_digest=b"1" * 16),
    unlike(0, Outcome.UNCHANGED, cleaned_digest=b"2" * 16),
    unlike(0, Outcome.NOT_MODIFIED),
    unlike(0, Outcome.GONE, state=PageState.GONE),
    unlike(0, Outcome.FAILED, failure=Failure.TIMEOUT),
    unlike(0, Outcome.FAILED, failure=Failure.DNS),
    unlike(0, Outcome.MOVED, redirect_url="https://example.org/b"),
    changed(0, b"a copy"),
)
NOT_MODIFIED, MOVED, CHANGED = KINDS[2], KINDS[6], KINDS[7]
PAGES = (1, 2)
REPEATED = {each.value for each in visit_thinning.REPEATED}

WORDS = "SELECT outcome, failure, detail, status, cleaned_digest, version_id, visited_at FROM visit"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("thinning") / "m.db"
    with opened_file(path) as opened:
        discover_in_full(opened, [found(f"p{number}") for number in PAGES])
        yield opened, path


@pytest.fixture
def connection(file):
    opened, _ = file
    opened.execute("SAVEPOINT test")
    yield opened
    opened.execute("ROLLBACK TO test")
    opened.execute("RELEASE test")


def record(connection, page_id, kind, at):
    visit.record(connection, replace(kind, page_id=page_id, visited_at=at))


def thin(connection, before):
    """Delete repetitions among the visits before a time; return how many."""
    count = 0
    while (slice_ := visit_thinning.plan(connection, before)) is not None:
        visit_thinning.apply(connection, slice_)
        count += len(slice_.visit_ids)
    return count


def runs(connection, page_id):
    """Return what the visits of a page say: words, when first and last in a row."""
    rows = connection.execute(f"{WORDS} WHERE page_id = ? ORDER BY visited_at, visit_id", [page_id])
    found = []
    for words, group in itertools.groupby(rows, key=lambda row: row[:-1]):
        times = [row[-1] for row in group]
        found.append((words, times[0], times[-1], len(times)))
    return found


def first_copies(connection):
    """Return the visits in whose log each page has its first copy."""
    return [row.visit_id for row in visit_log.log(connection, limit=1000) if row.first_copy]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    kinds=st.lists(st.integers(0, len(KINDS) - 1), min_size=1, max_size=3, unique=True),
    visits=st.lists(
        st.tuples(
            st.sampled_from(PAGES),
            st.integers(0, 5),
            st.sampled_from([1.0] * 8 + [0.0, -5.0]),
        ),
        min_size=20,
        max_size=40,
    ),
    old=st.sampled_from([5, 15, 25, 70]),
    slice_visits=st.sampled_from([1, 3, 2000]),
)
def test_thinned_visits_tell_the_same_history(file, monkeypatch, kinds, visits, old, slice_visits):
    connection, path = file
    monkeypatch.setattr(visit_thinning, "SLICE_VISITS", slice_visits)
    at = NOW
    connection.execute("SAVEPOINT example")
    for page_id, number, step_s in visits:
        at += step_s
        record(connection, page_id, KINDS[kinds[number % len(kinds)]], at)
    before, copies = [runs(connection, page_id) for page_id in PAGES], first_copies(connection)
    deleted = thin(connection, NOW + old)
    after = [runs(connection, page_id) for page_id in PAGES]
    assert [[run[:3] for run in each] for each in after] == [
        [run[:3] for run in each] for each in before
    ]
    assert first_copies(connection) == copies
    assert deleted == sum(run[3] for each in before for run in each) - sum(
        run[3] for each in after for run in each
    )
    if old == 70:  # all of them
        assert all(
            length <= 2 for each in after for words, *_, length in each if words[0] in REPEATED
        )
    assert thin(connection, NOW + old) == 0
    connection.execute("ROLLBACK TO example")
    connection.execute("RELEASE example")
    assert doctor.examine(path).findings == ()


def test_visits_thin_as_they_grow_old(connection):
    for number in range(10):
        record(connection, 1, NOT_MODIFIED, NOW + number)
    assert [thin(connection, NOW + old) for old in (0.5, 3.5, 3.9, 9.5, 20)] == [0, 3, 0, 5, 0]
    assert [run[1:] for run in runs(connection, 1)] == [(NOW, NOW + 9, 2)]
    record(connection, 1, NOT_MODIFIED, NOW + 10)
    assert thin(connection, NOW + 20) == 0


@pytest.mark.parametrize("kind", [CHANGED, MOVED])
def test_visits_that_found_something_stay(connection, kind):
    for number in range(5):
        record(connection, 1, kind, NOW + number)
    assert thin(connection, NOW + 20) == 0


def test_visits_that_say_something_else_stay(connection):
    for at, (one, other) in enumerate(itertools.permutations(KINDS, 2)):
        for step_s, kind in enumerate((one, other, one)):
            record(connection, 1, kind, NOW + 10.0 * at + step_s)
        record(connection, 1, MOVED, NOW + 10.0 * at + 5.0)  # no next visit says the same
        assert thin(connection, NOW + 1e6) == 0, (one, other)


def test_a_slice_of_old_visits_says_how_far_it_went(connection):
    for number in range(3):
        record(connection, 1, NOT_MODIFIED, NOW + number)
    last = connection.execute("SELECT max(visit_id) FROM visit").get
    slice_ = visit_thinning.plan(connection, NOW + 1.5)
    assert slice_ == visit_thinning.ThinningPlan(last - 1, (last - 1,))
    assert visit_thinning.plan(connection, NOW + 1.5) == slice_  # nothing was changed
    visit_thinning.apply(connection, slice_)
    assert visit_thinning.plan(connection, NOW + 1.5) is None
