"""The last state of each page, and what moved."""

import numpy as np

from crawld.core.replica.page_table import PageColumns, PageTable


def rows(*pages):
    """Return columns of (page_id, host_id, path, signature, visited_at, version_id)."""
    page, host, path, text, at, version = zip(*pages, strict=True)
    return PageColumns(
        *(np.array(column, dtype=np.int64) for column in (page, host)),
        *(np.array(column, dtype=np.uint64) for column in (path, text, text)),
        np.array([[one, one] for one in text], dtype=np.uint64),
        np.array(at, dtype=np.float64),
        np.array(version, dtype=np.int64),
    )


def test_the_last_state_of_a_page_counts():
    table = PageTable()
    table.add(rows((5, 1, 7, 1, 0.0, 10), (2, 1, 8, 2, 0.0, 11), (5, 1, 7, 3, 1.0, 12)))
    moved = table.merge()
    assert table.pages.page_id.tolist() == [2, 5]
    assert table.pages.signature.tolist() == [2, 3]
    assert moved.listed.page_id.tolist() == [2, 5]
    assert (moved.replaced, moved.recopied.tolist()) == (0, [1])


def test_only_pages_with_another_text_are_listed_again():
    table = PageTable()
    table.add(rows((1, 1, 7, 1, 0.0, 10), (2, 2, 7, 1, 0.0, 11), (3, 3, 9, 4, 0.0, 0)))
    assert table.merge().recopied.tolist() == [1, 2]
    table.add(rows((2, 2, 7, 5, 1.0, 12), (1, 1, 7, 1, 2.0, 10), (9, 4, 7, 1, 1.0, 13)))
    table.add(rows((3, 3, 9, 4, 3.0, 14)))
    moved = table.merge()
    assert moved.listed.page_id.tolist() == [2, 9]
    assert (moved.replaced, moved.recopied.tolist()) == (1, [2, 3, 4])
    assert table.pages.visited_at.tolist() == [2.0, 1.0, 3.0, 1.0]
    again = table.merge()
    assert (len(again.listed.page_id), again.replaced, again.recopied.tolist()) == (0, 0, [])
