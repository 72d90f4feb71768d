"""Order of the hosts that share a rate."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from crawld.core.revisit.due import REST_EVERY
from crawld.core.turn_order import LEAST_SHARE, Lane, TurnOrder


def serve(order, turns, lane_of, share_of=lambda item: 1.0):
    """Return the items of so many turns; each waits again in its lane."""
    served = []
    for _ in range(turns):
        item = order.pop()
        served.append(item)
        order.served(item, share_of(item))
        order.put(item, lane_of(item))
    return served


def order_of(items, lane_of):
    order = TurnOrder()
    for item in items:
        order.put(item, lane_of(item))
    return order


def test_revisits_are_divided_in_proportion_to_the_shares():
    shares = {"a": 0.5, "b": 1.0, "c": 1.5}
    order = order_of(shares, lambda item: Lane.REVISIT)
    counts = Counter(serve(order, 600, lambda item: Lane.REVISIT, shares.get))
    assert all(abs(counts[item] - 200 * share) <= 2 for item, share in shares.items())


def test_a_host_that_comes_back_has_no_credit_for_the_time_it_wanted_nothing():
    order = order_of("ab", lambda item: Lane.REVISIT)
    serve(order, 100, lambda item: Lane.REVISIT)
    order.put("c", Lane.REVISIT)
    counts = Counter(serve(order, 30, lambda item: Lane.REVISIT))
    assert all(9 <= counts[item] <= 11 for item in "abc")


def test_no_host_starves_however_small_its_share():
    shares = {"poor": 0.0} | dict.fromkeys(range(20), 1.0)
    order = order_of(shares, lambda item: Lane.REVISIT)
    turns = int(3 * len(shares) / LEAST_SHARE)
    assert serve(order, turns, lambda item: Lane.REVISIT, shares.get).count("poor") >= 3


def test_due_work_comes_first_but_leaves_one_turn_to_the_rest():
    lanes = {"edit": Lane.DUE, "new": Lane.NEW, "old": Lane.REVISIT}
    counts = Counter(serve(order_of(lanes, lanes.get), 10 * REST_EVERY, lanes.get))
    assert counts == {"edit": 10 * (REST_EVERY - 1), "new": 5, "old": 5}


def test_new_pages_have_their_share_of_the_turns():
    lanes = {"new": Lane.NEW, "old": Lane.REVISIT}
    order = order_of(lanes, lanes.get)
    order.new_share = 0.25
    assert Counter(serve(order, 400, lanes.get))["new"] == 100


def test_hosts_with_new_pages_take_turns():
    order = order_of("abc", lambda item: Lane.NEW)
    assert "".join(serve(order, 9, lambda item: Lane.NEW)) == "abcabcabc"


def test_an_item_moves_to_a_more_urgent_lane_and_keeps_its_place_in_its_own():
    order = order_of("abc", lambda item: Lane.REVISIT)
    order.put("a", Lane.REVISIT)
    order.put("c", Lane.DUE)
    assert [order.pop() for _ in range(3)] == ["c", "a", "b"]
    assert order.pop() is None


def test_an_item_keeps_its_place_until_it_is_served_or_forgotten():
    for lane in Lane:
        order = order_of("abc", lambda item, lane=lane: lane)
        assert order.pop() == "a"
        order.put("a", lane)
        assert order.pop() == "a"
        order.forget("a")
        order.put("a", lane)
        assert [order.pop() for _ in range(3)] == ["b", "c", "a"]


def test_an_item_that_waits_elsewhere_first_has_the_place_of_its_arrival():
    order = order_of("abc", lambda item: Lane.REVISIT)
    order.arrive("late")
    serve(order, 30, lambda item: Lane.REVISIT)
    order.put("late", Lane.REVISIT)
    assert order.pop() == "late"


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from([*Lane, None, "pop"])), max_size=80
    )
)
def test_every_item_waits_once_until_it_is_popped_or_discarded(steps):
    order, waiting = TurnOrder(), {}
    for item, step in steps:
        if step is None:
            order.discard(item)
            waiting.pop(item, None)
        elif step == "pop":
            popped = order.pop()
            assert (popped in waiting) if waiting else popped is None
            waiting.pop(popped, None)
        else:
            order.put(item, step)
            waiting[item] = step
        assert len(order) == len(waiting)
        assert {each: order.lane_of(each) for each in order} == waiting
