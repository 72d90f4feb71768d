"""Pages that wait for their retry time."""

import math

from crawld.core.revisit.due import AT_LEISURE
from crawld.daemon.frontier.revisit_queue import AgainQueue, RetryQueue


def make_retries(**retry_times):
    retries = RetryQueue()
    for page, at in retry_times.items():
        retries.add(int(page[1:]), at)
    return retries


def test_pages_come_in_the_order_of_their_retry_times():
    retries = make_retries(p1=30.0, p2=10.0, p3=20.0)
    assert retries.first_at(0.0) == 10.0
    assert [retries.take(at) for at in (9.0, 25.0, 25.0, 25.0, 30.0, 99.0)] == [
        *(None, 2, 3, None),
        *(1, None),
    ]
    assert retries.first_at(0.0) is None


def test_a_dropped_page_does_not_come_back():
    retries = make_retries(p1=1.0, p2=2.0)
    assert retries.drop(1)
    assert not retries.drop(1)
    assert list(retries) == [2]


def test_recalled_pages_come_in_the_order_of_their_due_times():
    retries = make_retries(p1=50.0, p2=60.0, p3=70.0, p4=10.0)
    assert not retries.has_recalled
    retries.recall({2, 9}, 45.0)
    retries.recall({3}, 40.0)
    assert retries.has_recalled
    assert retries.first_at(5.0) == 5.0
    assert retries.due_at(5.0) == 40.0
    assert [retries.take_due() for _ in range(3)] == [3, 2, None]
    assert retries.due_at(5.0) == math.inf
    assert sorted(retries) == [1, 4]


def test_a_page_that_is_recalled_again_keeps_its_due_time():
    retries = make_retries(p1=50.0, p2=60.0)
    retries.recall({1, 2}, 45.0)
    retries.recall({1}, 70.0)
    retries.recall({2}, 30.0)
    retries.recall({1}, AT_LEISURE)
    assert [(retries.due_at(5.0), retries.take_due()) for _ in range(2)] == [(30.0, 2), (45.0, 1)]
    assert not len(retries)


def test_a_page_with_a_due_time_waits_for_its_retry_time():
    retries = make_retries(p1=50.0, p2=60.0)
    retries.add(7, 20.0, 35.0)
    retries.advance(2, 65.0)
    assert retries.first_at(0.0) == 20.0
    assert [retries.due_at(at) for at in (19.0, 20.0)] == [math.inf, 35.0]
    assert retries.take_due() == 7
    assert [retries.due_at(at) for at in (59.0, 60.0)] == [math.inf, 65.0]
    assert retries.take(60.0) == 1
    assert retries.take_due() == 2
    assert not len(retries)


def test_a_page_is_dropped_or_recalled_wherever_it_waits():
    retries = make_retries(p1=50.0)
    retries.add(2, 60.0, 65.0)
    retries.add_recalled(3, 40.0)
    assert [retries.drop(page) for page in (2, 3, 3)] == [True, True, False]
    retries.add(2, 60.0, 65.0)
    retries.recall({1, 2}, 30.0)
    assert {retries.take_due(), retries.take_due()} == {1, 2}


def test_pages_to_visit_again_come_in_the_order_of_their_due_times():
    again = AgainQueue()
    for page, due_at in ((1, 60.0), (2, 30.0), (3, 50.0)):
        again.add(page, due_at)
    again.advance(1, 40.0)
    again.advance(2, 90.0)
    again.advance(9, 1.0)
    assert again.due_at == 30.0
    assert [again.take() for _ in range(len(again))] == [2, 1, 3]
    assert again.due_at == math.inf
