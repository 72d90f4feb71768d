from contextlib import closing

from crawld.bench.start import DatabaseSize, fill_known_pages
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import page

ADDRESSES = ["127.1.0.1", "127.1.0.2"]


async def test_known_pages_with_copies_are_as_a_crawl_leaves_them(tmp_path):
    size = DatabaseSize(pages=6, hosts=2, unvisited_every=0, copies=True)
    await fill_known_pages(tmp_path / "m.db", size, ADDRESSES)
    with closing(open_connection(tmp_path / "m.db")) as connection:
        pages = [page.for_visit(connection, number) for number in range(1, 7)]
        assert {each.host for each in pages} == set(ADDRESSES)
        # Else no visit asks with conditions, and no job has a model to read.
        assert all(each.version_id and each.etag and each.model for each in pages)
