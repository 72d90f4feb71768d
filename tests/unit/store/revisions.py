"""Pages visited at each of a list of revisions."""

from crawld.bench.revisions import phpdoc as phpdoc
from crawld.store import visit
from crawld.store.frontier import frontier
from crawld.store.versions import delta
from crawld.store.versions import version as versions
from tests.unit.store.rows import changed, found


def record_page(connection, name, revisions):
    """Visit a page at each of its revisions; return its page_id."""
    [page] = frontier.discover(connection, [found(name)])
    for at, content in revisions:
        visit.record(connection, changed(page.page_id, content, at=float(at)))
    return page.page_id


def compact(connection):
    """Compact all new versions; return how many bodies became deltas."""
    count = 0
    while (slice_ := delta.plan(connection)) is not None:
        assert slice_.unreadable == ()
        delta.apply(connection, slice_)
        count += len(slice_.deltas)
    return count


def contents(connection, page_id):
    """Return the contents of a page's copies, oldest first."""
    rows = versions.list_versions(connection, page_id, limit=10_000)
    return [versions.read_body(connection, row.version_id) for row in reversed(rows)]
