"""Models, priors, noise rules and content identities."""

import apsw
import pytest

from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.change.prior import Gamma
from crawld.core.page import PageState
from crawld.store import visit as visits
from crawld.store import visit_log
from crawld.store.changes import allocation, model, volatile
from crawld.store.changes.model import BEFORE_FIRST, RefittedModel
from crawld.store.changes.volatile import Template
from crawld.store.frontier import frontier, page
from crawld.store.frontier.frontier import Discovery
from crawld.store.versions import unanalysed
from crawld.store.versions.unanalysed import ContentIdentity
from tests.unit.store.rows import NOW, changed, found, unlike

SKETCH = bytes(range(128))


@pytest.fixture
def page_ids(connection):
    paths = [("a", "a.org"), ("b", "a.org"), ("c", "b.org")]
    return [
        new.page_id
        for path, host in paths
        for new in frontier.discover(connection, [found(path, host=host)])
    ]


def record_at(at):
    made = PageModel()
    made.update(Observation(at, False))
    return made.to_bytes()


def test_a_visit_stores_model_rules_and_validators(connection, page_ids):
    learned = {"model": record_at(NOW), "rules": b"r" * 25, "template": Template(b"t" * 25, 3)}
    identity_of = {"cleaned_digest": b"c" * 16, "sketch": SKETCH, "difference": 0.25}
    visits.record(
        connection,
        changed(page_ids[0], b"<p>x", **learned, **identity_of, validators=b"v", change_streak=2),
    )
    stored = page.for_visit(connection, page_ids[0])
    assert (stored.model, stored.validators, stored.change_streak) == (record_at(NOW), b"v", 2)
    assert model.of_page(connection, page_ids[0]) == record_at(NOW)
    assert volatile.of_page(connection, page_ids[0]) == b"r" * 25
    assert volatile.of_host(connection, stored.host_id) == Template(b"t" * 25, 3)
    sql = "SELECT cleaned_digest, sketch FROM {} WHERE page_id = ?"
    for table in ("page", "visit"):
        row = connection.execute(sql.format(table), (page_ids[0],)).fetchone()
        assert row == (b"c" * 16, SKETCH)
    [row] = visit_log.of_page(connection, page_ids[0])
    assert row.difference == 0.25


def test_a_visit_updates_a_model_that_a_job_stored_during_the_fetch(connection, page_ids):
    seen = []

    def remodel(stored, exact_until):
        seen.append((stored, exact_until))
        return b"both"

    first, second, *_ = page_ids
    more = {"model": b"visit", "remodel": remodel}
    visits.record(connection, changed(first, b"1", model_before=None, **more))
    assert model.of_page(connection, first) == b"visit"
    visits.record(connection, changed(first, b"2", NOW + 1, model_before=b"visit", **more))
    assert (model.of_page(connection, first), seen) == (b"visit", [])
    # A history was read between the fetch and the visit's commit.
    for page_id, before in ((first, b"visit"), (second, None)):
        model.put(connection, page_id, b"history")
        visits.record(connection, changed(page_id, b"3", NOW + 2, model_before=before, **more))
        assert model.of_page(connection, page_id) == b"both"
    assert seen == [(b"history", None)] * 2


def test_a_visit_without_evidence_changes_no_model(connection, page_ids):
    visits.record(connection, changed(page_ids[0], b"1", model=b"m", rules=b"r", validators=b"v"))
    visits.record(connection, unlike(page_ids[0], "failed", NOW + 1))
    stored = page.for_visit(connection, page_ids[0])
    assert (stored.model, stored.validators) == (b"m", b"v")
    assert volatile.of_page(connection, page_ids[0]) == b"r"
    assert volatile.of_host(connection, stored.host_id) == Template()
    visits.record(connection, changed(page_ids[0], b"2", NOW + 2, rules=b""))
    assert volatile.of_page(connection, page_ids[0]) == b""
    assert connection.execute("SELECT count(*) FROM volatile").get == 0


def test_models_are_read_host_by_host(connection, page_ids):
    for number, page_id in enumerate(page_ids):
        model.put(connection, page_id, record_at(NOW + number))
    rows, up_to = model.batch(connection, limit=10)
    assert up_to is None
    assert {row.page_id for row in rows} == set(page_ids)
    assert [row.host_id for row in rows] == sorted(row.host_id for row in rows)
    one_by_one, after = [], BEFORE_FIRST
    while after is not None:
        batch, after = model.batch(connection, after=after, limit=1)
        one_by_one += batch
    assert one_by_one == rows


@pytest.mark.parametrize("batch", [model.batch, allocation.batch])
def test_a_batch_reads_no_more_pages_without_a_model_than_its_limit(connection, batch):
    urls = [f"https://many.org/{number}" for number in range(3_000)]
    found = [Discovery.of(url, site_id=1, at=NOW, depth=1) for url in urls]
    last = frontier.discover(connection, found)[-1].page_id
    visits.record(connection, unlike(last, "unchanged", NOW, state=PageState.VISITED))
    model.put(connection, last, record_at(NOW))
    steps = []  # of SQLite's machine, in hundreds

    def count():
        steps[-1] += 1
        return False

    after, rows = BEFORE_FIRST, []
    connection.set_progress_handler(count, 100)
    while after is not None:
        steps.append(0)
        read, after = batch(connection, after=after, limit=100)
        rows += read
    connection.set_progress_handler(None)
    assert [row.page_id for row in rows] == [last]
    assert max(steps) <= 60
    assert len(steps) >= 30


def test_a_refit_keeps_models_that_visits_changed(connection, page_ids):
    old, newer = record_at(NOW), record_at(NOW + 9)
    for page_id in page_ids[:2]:
        model.put(connection, page_id, old)
    model.put(connection, page_ids[1], newer)
    refitted = [RefittedModel(page_id, old, b"refitted") for page_id in page_ids]
    assert model.put_refitted(connection, refitted) == 1
    assert model.of_page(connection, page_ids[0]) == b"refitted"
    assert model.of_page(connection, page_ids[1]) == newer
    assert model.of_page(connection, page_ids[2]) is None


def test_an_unvisited_page_has_the_prior_of_its_host(connection, page_ids):
    host_id = page.for_visit(connection, page_ids[0]).host_id
    model.put_priors(connection, [(host_id, Gamma(0.5, 1000.0))])
    stored = [page.for_visit(connection, page_id) for page_id in page_ids]
    priors = [(one.prior_shape, one.prior_exposure_s) for one in stored]
    assert priors == [(0.5, 1000.0), (0.5, 1000.0), (None, None)]


def test_an_unvisited_page_has_the_prior_of_its_section(connection):
    paths = ["news/1", "news/2", "about"]
    pages = [frontier.discover(connection, [found(path)])[0].page_id for path in paths]
    host_id = page.for_visit(connection, pages[0]).host_id
    model.put_section_priors(connection, [(host_id, "news", Gamma(2.0, 900.0))])
    model.put_priors(connection, [(host_id, Gamma(0.5, 1000.0))])
    visits.record(connection, changed(pages[1], b"<p>x", model=record_at(NOW)))
    stored = [page.for_visit(connection, page_id) for page_id in pages]
    # A page with a model has its own; a section without a prior has that of its host.
    expected = [(2.0, 900.0), (0.5, 1000.0), (0.5, 1000.0)]
    assert [(one.prior_shape, one.prior_exposure_s) for one in stored] == expected
    model.put_section_priors(connection, [(host_id, "news", Gamma(3.0, 800.0))])
    assert page.for_visit(connection, pages[0]).prior_shape == 3.0


def test_scale_models_are_read_as_stored(connection, page_ids):
    site_id = page.for_visit(connection, page_ids[0]).site_id
    assert model.site_of(connection, site_id) is None
    model.put_site(connection, site_id, NOW, {"weights": [0.1, 1e-30], "mass": [1.0]})
    model.put_site(connection, site_id, NOW, {"weights": [0.2], "mass": [1.0]})
    assert model.site_of(connection, site_id) == {"weights": [0.2], "mass": [1.0]}


def test_change_times_are_those_of_copies_without_a_history(connection, page_ids):
    record = page.for_visit(connection, page_ids[0])
    for at in (NOW + 3, NOW + 7):
        visits.record(connection, changed(page_ids[0], b"at %d" % at, at))
    place = (connection, record.host_id, record.site_id)
    [found] = model.known_changes(*place, pages=9, newest=5)
    assert found == (page_ids[0], [NOW + 3, NOW + 7], NOW + 7)
    connection.execute(
        "INSERT INTO change (page_id, changed_at, revision_id, source, kind) VALUES"
        " (?1, 5.0, 1, 'revision', NULL), (?1, 6.0, 2, 'revision', 'null')",
        (page_ids[0],),
    )
    assert model.known_changes(*place, pages=9, newest=5)[0].times == [5.0]


def test_a_page_with_the_history_of_its_former_url_may_have_no_visit_yet(connection, page_ids):
    record = page.for_visit(connection, page_ids[0])
    visits.record(connection, changed(page_ids[0], b"text", NOW + 3))
    connection.execute("UPDATE page SET last_visit_at = NULL WHERE page_id = ?", (page_ids[0],))
    place = (connection, record.host_id, record.site_id)
    assert model.known_changes(*place, pages=9, newest=5) == [(page_ids[0], [NOW + 3], 0.0)]


def test_unanalysed_copies_are_found_once(connection, page_ids):
    visits.record(connection, changed(page_ids[0], b"first", NOW))
    visits.record(connection, changed(page_ids[1], b"read", NOW, sketch=SKETCH))
    visits.record(connection, changed(page_ids[2], b"young", NOW + 100))
    [copy], up_to = unanalysed.next_copies(connection, before=NOW + 50, limit=10)
    assert (copy.page_id, up_to) == (page_ids[0], 2)
    unanalysed.put(connection, [ContentIdentity(copy.version_id, b"c" * 16, SKETCH)], up_to=up_to)
    for table in ("page", "visit"):
        row = connection.execute(
            f"SELECT cleaned_digest, sketch FROM {table} WHERE page_id = ?", (page_ids[0],)
        ).fetchone()
        assert row == (b"c" * 16, SKETCH)
    assert unanalysed.next_copies(connection, before=NOW + 50, limit=10) == ([], None)
    [young], _ = unanalysed.next_copies(connection, before=NOW + 200, limit=10)
    assert young.page_id == page_ids[2]


def test_a_few_analysed_copies_are_not_worth_a_commit(connection, page_ids):
    for page_id in page_ids[:2]:
        visits.record(connection, changed(page_id, page_id.to_bytes(), NOW, sketch=SKETCH))
    assert unanalysed.next_copies(connection, before=NOW + 50, limit=3) == ([], None)
    assert unanalysed.next_copies(connection, before=NOW + 50, limit=2) == ([], 2)


def test_rules_need_an_existing_page_or_host(connection):
    for put, rules in ((volatile.put_of_page, b"r"), (volatile.put_of_host, Template(b"t", 1))):
        with pytest.raises(apsw.ConstraintError):
            put(connection, 99, rules)
