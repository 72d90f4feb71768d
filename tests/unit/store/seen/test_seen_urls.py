import pytest

from crawld.core.seen.event import SeenMark
from crawld.store.seen import known, seen
from crawld.store.seen.seen import SeenFile
from crawld.store.seen.seen_urls import SeenUrls

URLS = [f"https://h{n % 7}.org/{n}" for n in range(100)]


@pytest.fixture
def file(connection):
    return SeenFile.of(connection, 7)


def test_answers_come_at_once_until_the_keys_fill_their_memory(connection, file):
    urls = SeenUrls.open(connection, file, 8 * 80)
    for start in range(0, 100, 20):
        at_once = start <= 80
        assert (urls.keys is not None) == at_once
        new = urls.offer(connection, URLS[: start + 20], SeenMark.WAITING)
        assert new == (URLS[start : start + 20] if at_once else [])
        urls.committed()
    assert urls.keys is None
    # What was told at once is not told by the batch.
    assert seen.settle_all(connection).urls == []
    assert len(list(known.urls_with_marks(connection))) == 100


@pytest.mark.parametrize(
    ("memory", "at_once"), [(0, False), (8 * 133, False), (8 * 134, True), (2**30, True)]
)
def test_a_file_is_opened_in_the_way_that_its_size_allows(connection, file, memory, at_once):
    seen.offer(connection, file, URLS[:60], SeenMark.WAITING)
    seen.settle_all(connection)
    seen.offer(connection, file, URLS[60:], SeenMark.WAITING)
    urls = SeenUrls.open(connection, file, memory)
    assert (urls.keys is not None) == at_once
    assert urls.offer(connection, [*URLS, "https://new.org/"], SeenMark.WAITING) == (
        ["https://new.org/"] if at_once else []
    )


def test_what_one_transaction_offers_twice_is_new_once(connection, file):
    urls = SeenUrls.open(connection, file, 2**30)
    assert urls.offer(connection, URLS, SeenMark.PAGE) == URLS
    assert urls.offer(connection, URLS, SeenMark.WAITING) == []
    urls.rolled_back()
    assert urls.offer(connection, URLS, SeenMark.PAGE) == URLS
