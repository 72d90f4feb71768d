"""Samples of copies are bounded and fair; evidence of visits decays; templates keep their sizes."""

from contextlib import closing

import numpy as np
import pytest

from crawld.core.change.model import PageModel
from crawld.core.revisit.quiet_visits import VISITS_KEPT, QuietVisits
from crawld.store.changes import fan_out, freshness, hint_source, model, template_use
from crawld.store.changes.template_use import Survey
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, site
from tests.unit.steps import sql_steps
from tests.unit.store.rows import NOW, found

HOST = "INSERT INTO host (host_id, host, added_at) VALUES (1, 'a.test', 0)"
ORIGIN = "INSERT INTO origin (origin_id, host_id, origin) VALUES (1, 1, 'https://a.test')"
PAGES = """
WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1)
INSERT INTO page (page_id, site_id, host_id, origin_id, url_hash, state, depth, seed, importance,
                  discovered_at, requisite, url, version_id, last_visit_at)
SELECT n, 1, 1, 1, n, 'visited', 0, 0, 1.0, 0, n % 2, 'https://a.test/' || n, 1, n FROM number
"""


@pytest.fixture
def file_of(tmp_path):
    """Return a function: a file with so many pages, every second one a copy."""
    opened = []

    def file_of(pages):
        path = tmp_path / f"{pages}.db"
        migrate.migrate(path, lambda _: None)
        connection = open_connection(path)
        opened.append(connection)
        site.upsert(connection, "s", "{}", source="config", at=NOW)
        with connection:
            for sql in (HOST, ORIGIN, PAGES):
                connection.execute(sql, (pages,) if "?1" in sql else ())
            copies = {"copies": pages // 2}
            connection.execute("UPDATE site SET pages_visited = :copies", copies)
        return connection

    yield file_of
    for connection in opened:
        with closing(connection):
            pass


def test_a_sample_reads_no_more_of_a_larger_file(file_of):
    few, many = file_of(1_000), file_of(100_000)
    # 500 copies are all read; of 50,000 no more than a sample may be.
    per_copy = sql_steps(few, freshness.sample_copies, 1) / 500
    steps = sql_steps(many, freshness.sample_copies, 1)
    assert steps < 2.0 * per_copy * freshness.BLOCKS * freshness.BLOCK_PAGES
    again = sql_steps(file_of(200_000), freshness.sample_copies, 1)
    assert again == pytest.approx(steps, rel=0.05)


def test_a_large_site_is_sampled_evenly(file_of):
    taken = freshness.sample_copies(file_of(100_000), 1)
    assert taken.copies == pytest.approx(50_000, rel=0.05)
    assert len(taken.sampled) == pytest.approx(2_000, rel=0.1)
    # A page's visit is at its number: even over the file, and no requisite (odd numbers).
    at = np.array([copy.visited_at for copy in taken.sampled])
    assert np.all(at % 2 == 0)
    assert np.mean(at) == pytest.approx(50_000, rel=0.02)
    assert np.percentile(at, [25, 75]) == pytest.approx([25_000, 75_000], rel=0.03)


def test_a_small_part_of_a_large_file_is_read_whole(file_of):
    connection = file_of(100_000)
    site.upsert(connection, "other", "{}", source="config", at=NOW)
    connection.execute("UPDATE page SET site_id = 2 WHERE page_id BETWEEN 600 AND 699")
    connection.execute("UPDATE site SET pages_visited = 50 WHERE site_id = 2")
    taken = freshness.sample_copies(connection, 2)
    assert (taken.copies, len(taken.sampled)) == (50, 50)


def test_pages_that_a_site_shares_are_its_copies_too(file_of):
    connection = file_of(1_000)
    site.upsert(connection, "other", "{}", source="config", at=NOW)
    connection.execute(
        "INSERT INTO page_share (site_id, page_id) SELECT 2, page_id FROM page WHERE page_id < 100"
    )
    taken = freshness.sample_copies(connection, 2)
    assert (taken.copies, len(taken.sampled)) == (49, 49)  # every second one is a requisite
    # Each of them belongs to the first site only.
    assert taken.own_copies == 0
    whole = freshness.sample_copies(connection, 1)
    assert whole.own_copies == whole.copies == 500
    large = file_of(100_000)
    site.upsert(large, "other", "{}", source="config", at=NOW)
    large.execute("INSERT INTO page_share (site_id, page_id) SELECT 2, page_id FROM page")
    taken = freshness.sample_copies(large, 2)
    assert taken.copies == pytest.approx(50_000, rel=0.05)
    assert len(taken.sampled) == pytest.approx(2_000, rel=0.1)


def test_copies_that_are_marked_as_removed_are_not_shown(file_of):
    connection = file_of(1_000)
    connection.execute(
        "INSERT INTO removal (page_id, kind, first_at, last_at)"
        " SELECT page_id, 'deletion', 1.0, 1.0 FROM page WHERE page_id <= 100"
    )
    assert len(freshness.sample_copies(connection, 1).sampled) == 450


def test_a_copy_comes_with_its_rate_and_its_hints(connection):
    page, _ = frontier.discover(connection, [found("a"), found("b")])
    connection.execute("UPDATE page SET state = 'visited', version_id = 1, last_visit_at = 5.0")
    connection.execute("UPDATE site SET pages_visited = 2")
    known = PageModel(exact_changes=2.0, exact_exposure_s=700.0, changed=1.0, rate=3e-6)
    model.put(connection, page.page_id, known.to_bytes())
    source = hint_source.ensure(connection, 1, 1, "recent_changes", "https://a.test/api", NOW)
    connection.execute(
        "INSERT INTO hint VALUES (?, ?, 6.0, 7.0, 8.0, 1)", (page.page_id, source.hint_source_id)
    )
    with_hint, without = freshness.sample_copies(connection, 1).sampled
    assert with_hint.rate == pytest.approx((3e-6, 2.0 + 1.0 + known.prior.shape))
    assert with_hint.hints == ((source.hint_source_id, 6.0, 7.0, 8.0),)
    assert (without.rate, without.hints, without.visited_at) == (None, (), 5.0)


def test_evidence_of_visits_adds_up_and_decays(connection):
    assert freshness.quiet_visits(connection, 1) == QuietVisits()
    for _ in range(2):
        freshness.add_quiet_visits(
            connection, {1: QuietVisits(50.0, 1.0, 0.5, 500.0), 9: QuietVisits()}
        )
    assert freshness.quiet_visits(connection, 1) == QuietVisits(100.0, 2.0, 1.0, 1_000.0)
    freshness.add_quiet_visits(connection, {1: QuietVisits(100.0, 2.0, 1.0, 1_000.0)})
    kept = freshness.quiet_visits(connection, 1)
    assert kept.count == VISITS_KEPT
    assert kept.stale / kept.count == pytest.approx(0.02)
    assert freshness.quiet_visits(connection, 9) == QuietVisits()  # there is no such site


def test_templates_keep_the_size_of_their_last_listing(connection):
    frontier.discover(connection, [found("a")])
    number = hint_source.ensure(connection, 1, 1, "fan_out", "u", NOW).hint_source_id
    fan_out.record(connection, number, "Template:A", 500, NOW)
    fan_out.record(connection, number, "Template:A", 30, NOW, continued=True)
    fan_out.record(connection, number, "Template:B", 7, NOW)
    listed = fan_out.listed(connection, number)
    assert listed == {"Template:A": (530, NOW), "Template:B": (7, NOW)}
    fan_out.record(connection, number, "Template:A", 4, NOW + 1.0)
    for other in range(fan_out.MAX_CAUSES - 1):
        fan_out.record(connection, number, f"Template:{other}", 1, NOW + 1.0)
    listed = fan_out.listed(connection, number)
    assert listed["Template:A"] == (4, NOW + 1.0)
    assert len(listed) == fan_out.MAX_CAUSES
    assert "Template:B" not in listed


def test_the_last_answer_of_a_wiki_about_its_templates_is_kept(connection):
    frontier.discover(connection, [found("a")])
    number = hint_source.ensure(connection, 1, 1, "fan_out", "u", NOW).hint_source_id
    assert template_use.get(connection, number) is None
    assert template_use.surveyed_at(connection, number) is None
    for at, uses in ((NOW, {"Template:A": 3}), (NOW + 9.0, {"Template:B": 4, "File:C.png": 2})):
        survey = Survey(at, 100, uses)
        template_use.put(connection, hint_source_id=number, survey=survey)
        assert template_use.get(connection, number) == survey
        assert template_use.surveyed_at(connection, number) == at
