import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawld.core.units import DAY_S
from crawld.store import doctor, visit, visit_log
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import page, site
from crawld.store.versions import delta, pin, retention
from crawld.store.versions.retention import RetentionRule, StoredVersion
from tests.unit.store.revisions import compact, contents, record_page
from tests.unit.store.rows import NOW, changed

TEXT = "".join(f"<p>line {number} of the page</p>\n" for number in range(200)).encode()


def edited(number):
    return TEXT.replace(b"line 99 ", b"line 99.%d " % number)


def daily(count):
    return [(NOW + number * DAY_S, edited(number)) for number in range(count)]


def thin(connection, rule, now, *, compacted=True):
    """Apply a rule to all pages; return how many copies were removed."""
    count, after = 0, 0
    while (slice_ := retention.plan(connection, {1: rule}, now, after=after)) is not None:
        retention.apply(connection, slice_)
        assert slice_.up_to > after or slice_.versions
        count, after = count + len(slice_.versions), slice_.up_to
        if compacted:
            compact(connection)
    return count


def kept(count, rule, now):
    copies = [StoredVersion(number, NOW + number * DAY_S, number) for number in range(count)]
    gone = retention.expired(copies, rule, now)
    return [copy.version_id for copy in copies if copy not in gone]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (RetentionRule(), [0, 1, 2, 3, 4, 5]),
        (RetentionRule(keep_versions=1), [0, 5]),
        (RetentionRule(keep_versions=3), [0, 3, 4, 5]),
        (RetentionRule(keep_versions=6), [0, 1, 2, 3, 4, 5]),
        (RetentionRule(keep_versions=100), [0, 1, 2, 3, 4, 5]),
        # copy 2 shows day 2.5 and was superseded on day 3
        (RetentionRule(keep_days=3.5), [0, 2, 3, 4, 5]),
        (RetentionRule(keep_days=0.1), [0, 5]),
        (RetentionRule(keep_versions=2, keep_days=3.5), [0, 4, 5]),
        (RetentionRule(keep_versions=5, keep_days=2.5), [0, 3, 4, 5]),
    ],
)
def test_first_and_last_stay_and_each_limit_applies(rule, expected):
    assert kept(6, rule, NOW + 6 * DAY_S) == expected


@pytest.mark.parametrize("count", [0, 1, 2])
def test_one_or_two_copies_are_never_removed(count):
    rule = RetentionRule(keep_versions=1, keep_days=0.1)
    assert kept(count, rule, NOW + 900 * DAY_S) == list(range(count))


@pytest.mark.parametrize("compacted", [True, False])
def test_remaining_copies_are_readable_and_nothing_else_is_left(connection, path, compacted):
    page_id = record_page(connection, "p", daily(20))
    if compacted:
        compact(connection)
    assert thin(connection, RetentionRule(keep_versions=5), NOW, compacted=compacted) == 14
    assert contents(connection, page_id) == [edited(n) for n in (0, 15, 16, 17, 18, 19)]
    assert connection.execute("SELECT count(*) FROM body").get == 6
    assert doctor.examine(path).findings == ()


def test_the_first_body_is_based_on_the_next_that_stays(connection):
    page_id = record_page(connection, "p", daily(20))
    compact(connection)
    thin(connection, RetentionRule(keep_versions=2), NOW)
    rows = connection.execute("SELECT body_id, base_id FROM body ORDER BY body_id").fetchall()
    assert rows == [(1, 19), (19, 20), (20, None)]
    assert contents(connection, page_id) == [edited(n) for n in (0, 18, 19)]


def test_deltas_on_a_removed_key_frame_move_to_the_next_copy(connection, path):
    page_id = record_page(connection, "p", daily(6))
    # 0 is based on 1, 1 on 2; then 2 is made a key frame by hand
    delta.apply(connection, delta.plan(connection, limit=3))
    connection.execute("UPDATE meta SET value = 4 WHERE key = 'deltas_up_to'")
    compact(connection)
    bases = dict(connection.execute("SELECT body_id, base_id FROM body"))
    assert bases == {1: 2, 2: 3, 3: None, 4: 5, 5: 6, 6: None}
    thin(connection, RetentionRule(keep_versions=3), NOW)
    bases = dict(connection.execute("SELECT body_id, base_id FROM body"))
    assert bases == {1: 4, 4: 5, 5: 6, 6: None}
    assert contents(connection, page_id) == [edited(n) for n in (0, 3, 4, 5)]
    assert doctor.examine(path).findings == ()


def test_bodies_shared_with_other_pages_stay(connection, path):
    one = record_page(connection, "p", daily(9))
    other = record_page(connection, "q", [(NOW, edited(4))])
    compact(connection)
    thin(connection, RetentionRule(keep_versions=1), NOW)
    assert contents(connection, one) == [edited(0), edited(8)]
    assert contents(connection, other) == [edited(4)]
    assert connection.execute("SELECT count(*) FROM body").get == 3
    assert doctor.examine(path).findings == ()


def test_sites_without_a_rule_are_left_alone(connection):
    record_page(connection, "p", daily(9))
    rules = {7: RetentionRule(keep_versions=1)}
    assert retention.plan(connection, rules, NOW, after=0).versions == []


def test_a_page_of_many_copies_is_thinned_in_slices(connection, path):
    count = retention.SLICE_VERSIONS * 2 + 30
    page_id = record_page(connection, "p", [(NOW + n, b"copy %d" % n) for n in range(count)])
    other = record_page(connection, "q", daily(4))
    first = retention.plan(connection, {1: RetentionRule(keep_versions=10)}, NOW, after=0)
    assert len(first.versions) == retention.SLICE_VERSIONS
    assert thin(connection, RetentionRule(keep_versions=3), NOW) == count - 4
    assert len(contents(connection, page_id)) == len(contents(connection, other)) == 4
    assert doctor.examine(path).findings == ()


def test_the_last_good_copy_stays_after_a_clock_reset(connection):
    page_id = record_page(connection, "p", daily(5))
    visit.record(connection, changed(page_id, b"newest", at=NOW + DAY_S / 2))
    thin(connection, RetentionRule(keep_versions=1), NOW + 90 * DAY_S)
    assert contents(connection, page_id) == [edited(0), b"newest", edited(4)]
    assert page.for_visit(connection, page_id).version_id == 6


def test_visits_lose_their_removed_copies(connection):
    page_id = record_page(connection, "p", daily(4))
    thin(connection, RetentionRule(keep_versions=1), NOW)
    rows = visit_log.of_page(connection, page_id)
    assert [row.version_id for row in rows] == [4, None, None, 1]


def test_a_copy_recorded_meanwhile_keeps_its_body_and_bases(connection, path):
    page_id = record_page(connection, "p", daily(6))
    compact(connection)
    slice_ = retention.plan(connection, {1: RetentionRule(keep_versions=1)}, NOW, after=0)
    visit.record(connection, changed(page_id, edited(3), at=NOW + 90 * DAY_S))
    retention.apply(connection, slice_)
    assert contents(connection, page_id) == [edited(0), edited(5), edited(3)]
    assert "dangling_key" not in {each.kind for each in doctor.examine(path).findings}


def test_a_damaged_delta_stays_with_its_bases(connection, path):
    page_id = record_page(connection, "p", daily(6))
    compact(connection)
    connection.execute("UPDATE body SET data = zeroblob(20) WHERE body_id = 1")
    assert thin(connection, RetentionRule(keep_versions=1), NOW, compacted=False) == 4
    assert connection.execute("SELECT count(*) FROM version").get == 2
    assert connection.execute("SELECT count(*) FROM body").get == 6
    assert "dangling_key" not in {each.kind for each in doctor.examine(path).findings}
    assert page.for_visit(connection, page_id).version_id == 6


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("visit"), st.integers(0, 2), st.integers(0, 12)),
        st.tuples(st.just("compact"), st.integers(1, 5)),
        st.tuples(st.just("thin"), st.integers(1, 4)),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(STEPS)
def test_remaining_copies_are_readable_after_any_steps(steps):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crawld.db"
        migrate.migrate(path)
        with closing(open_connection(path)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            site.upsert(connection, "docs", "{}", source="config", at=NOW)
            model = {
                record_page(connection, f"p{n}", [(NOW, edited(n))]): [edited(n)] for n in range(3)
            }
            for number, (step, *arguments) in enumerate(steps, 1):
                if step == "visit":
                    page_id, content = list(model)[arguments[0]], edited(arguments[1])
                    visit.record(connection, changed(page_id, content, at=NOW + number))
                    model[page_id].append(content)
                elif step == "compact":
                    if (slice_ := delta.plan(connection, limit=arguments[0])) is not None:
                        delta.apply(connection, slice_)
                else:
                    rule = RetentionRule(keep_versions=arguments[0])
                    thin(connection, rule, NOW, compacted=False)
                    for all_ in model.values():
                        del all_[1 : max(1, len(all_) - arguments[0])]
            assert {page_id: contents(connection, page_id) for page_id in model} == model
            assert doctor.examine(path).findings == ()


def test_a_pinned_copy_stays(connection):
    page_id = record_page(connection, "a", daily(6))
    held = pin.put(connection, page_id, NOW, NOW + 2 * DAY_S)
    thin(connection, RetentionRule(keep_versions=1), NOW + 9 * DAY_S)
    assert len(contents(connection, page_id)) == 3
    assert pin.get(connection, page_id) == held
