import pytest

from crawld.core.page import Outcome
from crawld.store import visit
from crawld.store.changes import wiki_requisite
from crawld.store.changes.wiki_requisite import StaleRequisite
from crawld.store.frontier import site
from tests.unit.store.rows import NOW, discover_in_full, found, unlike

DAY_S = 86_400.0
PATHS = (
    "images/a/ab/Flag_of_Chad.svg",
    "images/thumb/a/ab/Flag_of_Chad.svg/220px-Flag_of_Chad.svg.png",
    "images/9/9c/%C3%89toile.png",
    "images/b/b0/Another.png",
    "Flag_of_Chad.svg/deeper/down.png",
    "w/load.php?lang=en&modules=site.styles",
    "w/resources/load.php.png",
    "w/load.php?modules=skins.vector.styles.legacy%7Csite&only=styles",
    "w/load.php?modules=startup&only=scripts&raw=1",
    "w/load.php",
    "w/load.php?lang=en&modules=mediawiki.action.styles%7Cskins.vector.styles.legacy",
)


def visit_requisites(connection):
    """Add requisites that are due again in a day; return their page_ids by path."""
    site.upsert(connection, "s", "{}", source="config", at=NOW)
    _, ids = discover_in_full(connection, [found(path, requisite=True) for path in PATHS])
    for page_id in ids:
        visit.record(connection, unlike(page_id, Outcome.UNCHANGED, retry_at=NOW + DAY_S))
    return dict(zip(PATHS, ids, strict=True))


def stale(connection, *files, styles=False):
    rows = wiki_requisite.find_stale(connection, (1,), files=set(files), styles=styles)
    return {each.page_id for each in rows}


def test_an_upload_makes_the_image_and_its_thumbnails_stale(connection):
    ids = visit_requisites(connection)
    assert stale(connection, "Flag_of_Chad.svg") == {ids[PATHS[0]], ids[PATHS[1]]}
    assert stale(connection, "Étoile.png") == {ids[PATHS[2]]}
    assert not stale(connection, "Flag")


@pytest.mark.parametrize(
    ("widths", "dense"),
    [
        ((120, 180, 240), {180, 240}),
        ((125, 188, 250), {188, 250}),
        ((220, 330, 440, 500), {330, 440}),
        ((120, 200), set()),
        ((240,), set()),
    ],
)
def test_a_thumbnail_that_has_a_smaller_one_beside_it_is_for_dense_screens(
    connection, widths, dense
):
    site.upsert(connection, "s", "{}", source="config", at=NOW)
    paths = {f"images/thumb/9/9e/A.png/{width}px-A.png": width for width in widths}
    # Of another file, so that the widths of files are kept apart; and one page of a document.
    others = {"images/thumb/1/1c/B.png/180px-B.png": 0, "images/9/9e/A.png": 0}
    given = paths | others
    _, ids = discover_in_full(connection, [found(path, requisite=True) for path in given])
    for page_id in ids:
        visit.record(connection, unlike(page_id, Outcome.UNCHANGED, retry_at=NOW + DAY_S))
    rows = wiki_requisite.find_stale(connection, (1,), files={"A.png", "B.png"}, styles=False)
    width_of = dict(zip(ids, given.values(), strict=True))
    assert {width_of[row.page_id] for row in rows if row.is_dense} == dense
    wiki_requisite.make_due(connection, rows, NOW + 1)
    sql = "SELECT page_id FROM page WHERE retry_at = ?"
    reported = {width_of[page_id] for (page_id,) in connection.execute(sql, (NOW + 1,))}
    assert reported == {0, *widths} - dense


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("220px-Flag_of_Chad.svg.png", 220),
        ("page3-220px-Book.pdf.jpg", 220),
        ("lossy-page1-440px-Book.tif.jpg", 440),
        ("Flag_of_Chad.svg", 0),
        ("px-Flag.png", 0),
        ("123456px-Flag.png", 0),
        ("٣px-Flag.png", 0),
    ],
)
def test_the_width_of_a_thumbnail(name, width):
    assert wiki_requisite._width_of(name) == width


def test_an_edit_of_styles_makes_the_loader_stale(connection):
    ids = visit_requisites(connection)
    # The modules of the last come with the wiki's software.
    assert stale(connection, styles=True) == {ids[path] for path in (PATHS[5], *PATHS[7:10])}


def test_stale_requisites_become_due_once_and_are_named_again(connection):
    ids = visit_requisites(connection)
    found = [StaleRequisite(ids[PATHS[0]], 1, 1)]
    for at in (NOW + 1, NOW + 9):
        wiki_requisite.make_due(connection, found, at)
        sql = "SELECT page_id, retry_at FROM page WHERE retry_at < ?"
        due = connection.execute(sql, (NOW + DAY_S,)).fetchall()
        assert due == [(ids[PATHS[0]], NOW + 1)]
    # Its visit may be under way.
    assert stale(connection, "Flag_of_Chad.svg") == {ids[PATHS[0]], ids[PATHS[1]]}


def test_a_thumbnail_whose_smaller_one_is_due_is_for_dense_screens(connection):
    site.upsert(connection, "s", "{}", source="config", at=NOW)
    paths = [f"images/thumb/9/9e/A.png/{width}px-A.png" for width in (120, 240)]
    _, ids = discover_in_full(connection, [found(path, requisite=True) for path in paths])
    # The first one was never visited, or is due.
    visit.record(connection, unlike(ids[1], Outcome.UNCHANGED, retry_at=NOW + DAY_S))
    rows = wiki_requisite.find_stale(connection, (1,), files={"A.png"}, styles=False)
    assert {row.page_id: row.is_dense for row in rows} == {ids[0]: False, ids[1]: True}
