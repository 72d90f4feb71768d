"""Pages that wait for their retry time."""

from crawld.daemon.frontier.revisit_queue import RetryQueue


def make_retries(**retry_times):
    retries = RetryQueue()
    for page, at in retry_times.items():
        retries.add(int(page[1:]), at)
    return retries


def test_pages_come_in_the_order_of_their_retry_times():
    retries = make_retries(p1=30.0, p2=10.0, p3=20.0)
    assert retries.first_at() == 10.0
    assert [retries.take(at) for at in (9.0, 25.0, 25.0, 25.0, 30.0, 99.0)] == [
        *(None, 2, 3, None),
        *(1, None),
    ]
    assert retries.first_at() is None


def test_a_dropped_page_does_not_come_back():
    retries = make_retries(p1=1.0, p2=2.0)
    assert retries.drop(1)
    assert not retries.drop(1)
    assert list(retries) == [2]


def test_recalled_pages_come_at_once():
    retries = make_retries(p1=50.0, p2=60.0, p3=70.0)
    retries.recall({3, 9})
    assert retries.take(0.0) == 3
    assert retries.first_at() == 50.0
    assert sorted(retries) == [1, 2]
