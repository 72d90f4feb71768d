"""The order of a host's turns when several kinds of pages wait: what a reader sees comes first."""

import pytest
import trio

from crawld.core.revisit.due import (
    AT_LEISURE,
    AT_ONCE,
    AUDIT_S,
    MISSING_S,
    PROMPT_S,
    REST_EVERY,
    RETRY_S,
    Due,
)
from crawld.daemon.frontier.rank import Rank
from tests.unit.daemon.fake_hosts import on_autojump_clock
from tests.unit.daemon.frontier.order_hosts import DAY_S, NOW, PAGES, make_host, turns


@on_autojump_clock
async def test_what_is_due_first_then_users_of_templates_then_revisits():
    host = make_host(requisites=(501, 502, 503))
    queue = host.pages[1]
    for page in (21, 22, 23, 24):
        queue.add_hint(page, NOW - 5.0, 0.9, indirect=True)
    queue.visit_until(31, AT_LEISURE)
    host.requisites[1].recall({502, 503}, NOW + RETRY_S)
    for page in (11, 12):
        queue.add_hint(page, NOW - 5.0, 0.9)
    queue.visit_until(32, AT_ONCE)
    found = turns(host, 13)
    assert found[0] == 32
    assert set(found[1:3]) == {11, 12}
    assert set(found[3:5]) == {502, 503}
    assert set(found[5:9]) == {21, 22, 23, 24}
    assert found[9] == 31
    assert not {31, 32, 11, 12, 502, 503, 501} & set(found[10:])


@on_autojump_clock
async def test_images_wait_for_edits_but_no_longer_than_until_they_are_due():
    host = make_host(requisites=(501,))
    queue = host.pages[1]
    host.requisites[1].recall({501}, NOW + RETRY_S)
    found = []
    for turn in range(60):  # an edit a turn
        queue.add_hint(1 + turn % 30, NOW + turn, 0.9, due=Due.by(NOW + turn + PROMPT_S))
        found += turns(host, 1, at=NOW + turn)
    assert RETRY_S - PROMPT_S <= found.index(501) <= RETRY_S


@on_autojump_clock
async def test_an_audit_of_a_page_to_be_confirmed_does_not_wait_for_a_turn_at_leisure():
    host = make_host()
    host.pages[1].visit_until(5, AT_LEISURE)
    host.pages[1].visit_until(5, NOW + AUDIT_S)
    host.pages[1].visit_until(5, AT_LEISURE)
    host.pages[1].add_hint(7, NOW - 5.0, 0.9, indirect=True)
    assert turns(host, 2) == [5, 7]


@on_autojump_clock
async def test_a_new_page_is_not_taken_for_an_edited_one_however_long_it_waits():
    host = make_host()
    host.pages[1].add_new([301])
    for waited_s in (0.0, 10 * MISSING_S):
        assert not host.has_edited(NOW + waited_s, {1})


@on_autojump_clock
async def test_a_confirmation_waits_for_the_users_of_templates_of_all_sites():
    host = make_host((1, 2))
    host.pages[1].visit_until(5, AT_LEISURE)
    for page in range(1001, 1004):
        host.pages[2].add_hint(page, NOW - 5.0, 0.9, indirect=True)
    assert not host.has_stale({1})  # readers see the mark
    assert host.wanted_at(NOW, {1, 2}) == NOW
    found = turns(host, 5)
    assert set(found[:3]) == {1001, 1002, 1003}
    assert 5 in found[3:]


@on_autojump_clock
async def test_a_new_image_has_a_turn_in_time_however_many_edits_come():
    host = make_host(requisites=(501,))
    queue, images = host.pages[1], host.requisites[1]
    images.load_retry(502, NOW - 1.0)  # it is old, but nobody reports another picture
    images.recall({501}, NOW + 1_000.0)
    images.add_new([601, 602, 603])
    found = []
    for turn in range(100):  # an edit a turn
        queue.add_hint(1 + turn % 30, NOW + turn, 0.9, due=Due.by(NOW + turn + PROMPT_S))
        found += turns(host, 1, at=NOW + turn)
    by_due_times = [turn for turn, page in enumerate(found) if page in (601, 602, 603)]
    assert found[by_due_times[0]] == 601
    assert by_due_times[0] <= MISSING_S
    assert by_due_times[1] - by_due_times[0] <= MISSING_S + 1
    assert len(by_due_times) <= 100 / MISSING_S


@on_autojump_clock
async def test_a_picture_for_dense_screens_waits_for_the_users_of_templates():
    host = make_host(requisites=(501, 502))
    host.requisites[1].recall({501}, AT_LEISURE)
    host.requisites[1].recall({502}, NOW + RETRY_S)
    for page in range(11, 21):
        host.pages[1].add_hint(page, NOW - 5.0, 0.9, indirect=True)
    host.requisites[1].add_new(range(601, 605))
    found = turns(host, 18)
    assert found[0] == 502
    assert found[1:5] == [601, 602, 603, 604]  # no page shows something in their place
    assert set(found[5:15]) == set(range(11, 21))
    assert 501 in found[15:]


@on_autojump_clock
async def test_a_picture_for_dense_screens_waits_for_edits_that_do_not_end():
    host = make_host(requisites=(501,))
    host.requisites[1].recall({501}, AT_LEISURE)
    for page in range(11, 21):
        host.pages[1].add_hint(page, NOW - 5.0, 0.9, indirect=True)
    found = []
    for turn in range(6 * REST_EVERY):  # an edit a turn
        host.pages[1].add_hint(21 + turn % 20, NOW + turn, 0.9, due=Due.by(NOW + turn + PROMPT_S))
        found += turns(host, 1, at=NOW + turn)
    assert 501 not in found
    assert sum(page in range(11, 21) for page in found) == 6


@on_autojump_clock
async def test_the_order_holds_over_the_sites_of_a_host():
    host = make_host((1, 2, 3))
    for page in range(1001, 1004):
        host.pages[2].add_hint(page, NOW - 5.0, 0.9)
    for page in range(2001, 2004):
        host.pages[3].add_hint(page, NOW - 5.0, 0.9, indirect=True)
    found = turns(host, 7)
    assert set(found[:3]) == {1001, 1002, 1003}
    assert set(found[3:6]) == {2001, 2002, 2003}


@on_autojump_clock
async def test_while_edits_never_end_nothing_starves():
    host = make_host(requisites=(501,))
    queue = host.pages[1]
    host.requisites[1].add_new(range(601, 641))
    for page in range(31, 41):
        queue.add_hint(page, NOW - 5.0, 0.9, indirect=True)
    found = []
    for turn in range(200):
        at = NOW + turn
        queue.add_hint(1 + turn % 30, at, 0.9)
        found += turns(host, 1, at=at)
    assert sum(30 < page <= PAGES for page in found) == 200 // REST_EVERY
    assert sum(page > 600 for page in found) == 200 // (
        MISSING_S + 1
    )  # they have turns of their own


@on_autojump_clock
async def test_turns_that_edits_leave_count_for_the_rest():
    host = make_host()
    queue = host.pages[1]
    for page in range(31, 41):
        queue.add_hint(page, NOW - 5.0, 0.9, indirect=True)
    found = []
    for turn in range(2 * REST_EVERY):
        if turn % (REST_EVERY // 2):
            queue.add_hint(1 + turn % 30, NOW + turn, 0.9)
        found += turns(host, 1, at=NOW + turn)
    rest = [turn for turn, page in enumerate(found) if page > 30]
    assert rest == list(range(0, 2 * REST_EVERY, REST_EVERY // 2))


@on_autojump_clock
async def test_a_page_that_rests_is_visited_for_the_edit_of_its_template():
    host = make_host()
    turns(host, PAGES)
    assert turns(host, 1, at=NOW + 60.0) == [None]
    host.pages[1].add_hint(7, NOW + 50.0, 0.9, indirect=True)
    assert turns(host, 2, at=NOW + 61.0) == [7, None]


@on_autojump_clock
async def test_users_of_a_template_of_few_come_before_those_of_many():
    host = make_host()
    of_many, of_few = Due.of_user(NOW, 200), Due.of_user(NOW + 9.0, 2)
    for page in range(1, 31):
        host.pages[1].add_hint(page, NOW - 9.0, 0.9, indirect=True, due=of_many)
    for page in (31, 32):
        host.pages[1].add_hint(page, NOW - 5.0, 0.9, indirect=True, due=of_few)
    host.pages[1].add_hint(33, NOW - 5.0, 0.9, due=Due.by(NOW + DAY_S))
    found = turns(host, 33)
    assert found[0] == 33  # due times of users of templates do not delay an edit
    assert set(found[1:3]) == {31, 32}
    assert set(found[3:]) == set(range(1, 31))


@on_autojump_clock
async def test_users_of_templates_of_few_come_in_the_order_of_the_reports():
    host = make_host()
    queue = host.pages[1]
    for page in range(1, 6):
        queue.add_hint(page, NOW - 5.0, 0.9, indirect=True, due=Due.of_user(NOW, 50))
    for page in (31, 32):
        queue.add_hint(page, NOW + 5.0, 0.9, indirect=True, due=Due.of_user(NOW + 9.0, 2))
    found = turns(host, 7, at=NOW + 10.0)
    assert set(found[:5]) == set(range(1, 6))


@on_autojump_clock
async def test_users_of_a_template_of_few_come_first_whatever_their_site():
    host = make_host((1, 2))
    for page in range(1, 11):
        host.pages[1].add_hint(page, NOW - 9.0, 0.9, indirect=True, due=Due.of_user(NOW, 200))
        host.pages[2].add_hint(1000 + page, NOW, 0.9, indirect=True, due=Due.of_user(NOW, 50))
    assert all(page > 1000 for page in turns(host, 10, at=NOW + 1.0))


@on_autojump_clock
async def test_users_of_one_template_on_two_sites_take_turns():
    host = make_host((1, 2))
    for page in range(1, 11):
        host.pages[1].add_hint(page, NOW - 9.0, 0.9, indirect=True, due=Due.of_user(NOW, 50))
        host.pages[2].add_hint(1000 + page, NOW, 0.9, indirect=True, due=Due.of_user(NOW, 50))
    assert sum(page > 1000 for page in turns(host, 10, at=NOW + 1.0)) == 5


@on_autojump_clock
async def test_the_turns_that_edits_leave_go_to_the_user_of_a_template_that_is_due_first():
    host = make_host()
    queue = host.pages[1]
    for page in range(1, 21):
        queue.add_hint(page, NOW - DAY_S / 2, 0.9, indirect=True, due=Due.of_user(NOW, 200))
    queue.add_hint(PAGES, NOW - 1.0, 0.9, indirect=True, due=Due.of_user(NOW, 5))
    found = []
    for turn in range(REST_EVERY):
        queue.add_hint(21 + turn % 9, NOW + turn, 0.9, due=Due.by(NOW + turn))
        found += turns(host, 1, at=NOW + turn)
    assert [page for page in found if not 21 <= page <= 29] == [PAGES]


@on_autojump_clock
async def test_an_edit_of_a_page_that_includes_an_edited_template_makes_it_an_edit():
    host = make_host()
    queue = host.pages[1]
    for page in range(1, 21):
        queue.add_hint(page, NOW - 5.0, 0.9, indirect=True)
    queue.add_hint(13, NOW - 3.0, 0.9)
    assert queue.rank is Rank.EDITED
    queue.add_hint(13, NOW - 1.0, 0.9, indirect=True)
    assert turns(host, 1) == [13]
    assert queue.rank is Rank.AFFECTED


@on_autojump_clock
async def test_new_pages_of_one_site_share_the_turns_with_edits_of_another():
    host = make_host((1, 2))
    for page in range(1001, 1011):
        host.pages[2].add_hint(page, NOW - 5.0, 0.9)
    host.pages[1].add_new(range(301, 311))
    found = turns(host, 10)
    assert sum(300 < page < 400 for page in found) >= 3
    assert sum(1000 < page < 1011 for page in found) >= 3


@on_autojump_clock
async def test_a_host_tells_whether_anything_known_is_stale():
    host = make_host(requisites=(501,))
    assert not host.has_stale({1})
    host.requisites[1].recall({501}, NOW + RETRY_S)
    assert host.has_stale({1})
    assert not host.has_stale({2})
    assert turns(host, 1) == [501]
    assert not host.has_stale({1})
    assert not host.has_unshown({1})
    host.pages[1].add_new([301])
    assert host.has_unshown({1})
    assert not host.has_stale({1})
    host.pages[1].add_hint(3, NOW - 1.0, 0.9, indirect=True)  # comes after the new page
    assert host.has_stale({1})


@on_autojump_clock
async def test_the_turn_before_a_poll_is_left_to_it_unless_a_copy_is_stale():
    host, now = make_host(requisites=(501,)), trio.current_time()
    host.poll_at = now + 0.8  # a visit now would end its delay later
    left_to = host.leave_turn(now, {1})
    assert now + 0.8 < left_to < now + 0.9
    assert host.leave_turn(now + 0.9, {1}) == now + 0.9
    host.slot.next_at = now + 0.88
    assert host.leave_turn(now, {1}) == now
    host.slot.next_at = now
    host.poll_at = now + 1.2  # there is time for both
    assert host.leave_turn(now, {1}) == now
    host.poll_at = now + 0.8
    host.requisites[1].recall({501}, NOW + RETRY_S)
    assert host.leave_turn(now, {1}) == now
    assert turns(host, 1) == [501]
    host.pages[1].add_hint(7, NOW - 1.0, 0.9, indirect=True)
    assert host.leave_turn(now, {1}) == now
    assert turns(host, 1) == [7]
    host.pages[1].add_new([99])
    assert host.leave_turn(now, {1}) == now


@on_autojump_clock
async def test_when_a_host_opens_the_poll_comes_before_pages_known_to_be_stale():
    host, now = make_host(), trio.current_time()
    host.pages[1].add_hint(7, NOW - 1.0, 0.9)
    host.poll_at = opens_at = now + 10.0
    assert opens_at < host.leave_turn(opens_at, {1}) < opens_at + 0.1
    assert host.leave_turn(opens_at + 0.2, {1}) == opens_at + 0.2  # the poll did not come


@on_autojump_clock
async def test_an_image_that_was_replaced_comes_before_new_ones():
    host = make_host(requisites=(501, 502))
    host.requisites[1].add_new([601, 602])
    host.requisites[1].recall({501, 502}, NOW + RETRY_S)
    assert set(turns(host, 2)) == {501, 502}


@pytest.mark.parametrize("edited_after_it_failed", [False, True])
@on_autojump_clock
async def test_an_edited_page_whose_visit_fails_keeps_its_due_time(edited_after_it_failed):
    host = make_host()
    queue = host.pages[1]
    if edited_after_it_failed:
        queue.visit_until(7, AT_ONCE)
    else:
        queue.add_hint(7, NOW - 5.0, 0.9, due=Due.by(NOW + 10.0))
    assert host.take(NOW, {1}) == (queue, 7)
    queue.retry(7, NOW + 30.0)
    if edited_after_it_failed:
        queue.add_hint(7, NOW + 5.0, 0.9, due=Due.by(NOW + 20.0))
    for page in (11, 12):
        queue.add_hint(page, NOW + 8.0, 0.9, due=Due.by(NOW + 25.0))
    queue.add_hint(13, NOW + 8.0, 0.9, due=Due.by(NOW + 5.0))
    assert queue.wanted_at(NOW) == NOW
    assert turns(host, 1, at=NOW + 29.0) == [13]
    assert turns(host, 3, at=NOW + 30.0)[0] == 7


@pytest.mark.parametrize("waited_for_a_retry", [False, True])
@on_autojump_clock
async def test_a_page_that_another_one_replaced_keeps_its_due_time_when_its_visit_fails(
    waited_for_a_retry,
):
    host = make_host()
    queue = host.pages[1]
    queue.visit_until(7, AT_ONCE)
    assert host.take(NOW, {1}) == (queue, 7)
    if waited_for_a_retry:
        queue.retry(7, NOW + 10.0)
        assert host.take(NOW + 10.0, {1}) == (queue, 7)
    queue.retry(7, NOW + 30.0)
    for page in (11, 12):
        queue.add_hint(page, NOW + 8.0, 0.9, due=Due.by(NOW + 25.0))
    assert turns(host, 1, at=NOW + 29.0) == [11]
    assert turns(host, 1, at=NOW + 30.0) == [7]
