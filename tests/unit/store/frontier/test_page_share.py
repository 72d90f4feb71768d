from crawld.store import visit
from crawld.store.frontier import frontier, page, page_heir, page_share, site
from crawld.store.mirror import titles
from tests.unit.store.rows import NOW, changed, found


def test_a_site_lists_the_pages_that_it_shares(connection):
    new = frontier.discover(connection, [found("a"), found("b")])
    other = site.upsert(connection, "other", "{}", source="config", at=NOW)
    frontier.discover(connection, [found("c", site_id=other)])
    visit.record(connection, changed(new[0].page_id, b"a", NOW))
    page_share.replace_all(connection, {other: {new[0].page_id}, 1: {new[0].page_id}})
    # A site does not share its own pages.
    assert page_share.counts(connection) == {other: 1}
    listed = [each.url.rsplit("/", 1)[1] for each in page.list_pages(connection, site_id=other)]
    assert listed == ["a", "c"]
    assert [each.page_id for each in titles.list_titles(connection, other)[0]] == [new[0].page_id]
    assert titles.list_titles(connection, 99) == ([], None)


def test_shares_are_replaced_and_end_when_the_site_takes_the_page(connection):
    new = frontier.discover(connection, [found("a"), found("b")])
    other = site.upsert(connection, "other", "{}", source="config", at=NOW)
    page_share.replace_all(connection, {other: {each.page_id for each in new}})
    page_heir.take_over(connection, new[0].page_id, other, 1.0)
    assert page_share.counts(connection) == {other: 1}
    page_share.replace_all(connection, {})
    assert page_share.counts(connection) == {}
