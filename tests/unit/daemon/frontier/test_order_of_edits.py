"""The order of edited pages: by their due times, while the host keeps up."""

import numpy as np
import pytest

from crawld.core.revisit.due import MISSED_S, PROMPT_S, SOON_S, Due
from crawld.core.revisit.policies_index import OVERDUE_S
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.revisit_queue import VisitedPages
from tests.unit.daemon.fake_hosts import on_autojump_clock
from tests.unit.daemon.frontier.order_hosts import (
    NOW,
    PAGES,
    make_host,
    turns,
)


class Arrivals:
    """Edits of the pages of a host, and how long each waits for the visit that shows it."""

    def __init__(self, host):
        self.host = host
        self.waiting = {}
        self.waits = []

    def edit(self, page, at):
        self.waiting.setdefault(page, []).append(at)

    def report(self, page, at, reported_at):
        queue = self.host.pages[1 + page // 1000]
        queue.add_hint(page, at, 0.9, due=Due.of_edit(at, reported_at))

    def turn(self, at):
        (page,) = turns(self.host, 1, at=at)
        self.waits += [at - edited_at for edited_at in self.waiting.pop(page, ())]
        return page


@on_autojump_clock
async def test_edits_are_visited_in_the_order_of_their_reports():
    host = make_host()
    turns(host, 3)
    for number, page in enumerate((31, 7, 22, 15, 40, 11)):
        host.pages[1].add_hint(page, NOW + 3.0 + 1.2 * number, 0.9)
    assert turns(host, 6, at=NOW + 14.5) == [31, 7, 22, 15, 40, 11]


@on_autojump_clock
async def test_edits_of_several_sites_are_visited_in_the_order_of_their_reports():
    host = make_host((1, 2, 3))
    turns(host, 3)
    for number, page in enumerate((31, 7, 1022, 15, 2040, 11)):
        host.pages[1 + page // 1000].add_hint(page, NOW + 3.0 + 1.2 * number, 0.9)
    assert turns(host, 6, at=NOW + 14.5) == [31, 7, 1022, 15, 2040, 11]


@on_autojump_clock
async def test_edits_that_can_be_shown_soon_do_not_wait_for_those_that_cannot():
    host = make_host((1, 2))
    reported_at = NOW + 9.0 + SOON_S  # three of the edits are at most SOON_S old
    for number, page in enumerate((31, 7, 1022, 15, 1040, 11)):
        Arrivals(host).report(page, NOW + 3.0 + 2 * number, reported_at)
    found = turns(host, 6, at=reported_at)
    assert found[:3] == [15, 1040, 11]
    assert set(found[3:]) == {31, 7, 1022}


@on_autojump_clock
async def test_an_edit_that_cannot_be_shown_soon_is_visited_in_time_however_many_can():
    host = make_host()
    found = Arrivals(host)
    found.edit(40, NOW - SOON_S - 1.0)
    found.report(40, NOW - SOON_S - 1.0, NOW)
    visited = []
    for turn in range(60):  # an edit a turn
        found.report(1 + turn % 30, NOW + turn, NOW + turn)
        visited.append(found.turn(NOW + turn))
    assert PROMPT_S - SOON_S - 2.0 <= visited.index(40) <= PROMPT_S


@on_autojump_clock
async def test_edits_that_missed_their_due_times_come_after_those_in_time():
    host = make_host((1, 2))
    turns(host, 3)
    reported_late = Due.of_edit(NOW - 30.0, NOW - 10.0)  # it keeps its place
    host.pages[1].add_hint(31, NOW - 30.0, 0.9, due=reported_late)
    host.pages[2].add_hint(1007, NOW + 3.0, 0.9)
    host.pages[1].add_hint(7, NOW + 5.0, 0.9)
    for number, page in enumerate((22, 1015)):
        host.pages[1 + page // 1000].add_hint(page, NOW + 20.0 + number, 0.9)
    host.pages[1].add_hint(11, NOW + 20.0, 0.9, due=Due.by(NOW + 20.0))  # readers see another page
    assert turns(host, 6, at=NOW + 22.0) == [31, 11, 22, 1015, 1007, 7]


@on_autojump_clock
async def test_an_edit_that_missed_its_due_time_is_visited_however_many_come():
    host = make_host()
    found = Arrivals(host)
    found.edit(40, NOW)
    found.report(40, NOW, NOW)
    visited = []
    for turn in range(120):  # an edit a turn
        found.report(1 + turn % 30, NOW + PROMPT_S + turn, NOW + PROMPT_S + turn)
        visited.append(found.turn(NOW + PROMPT_S + 1.0 + turn))
    assert MISSED_S - PROMPT_S - 2.0 <= visited.index(40) <= MISSED_S


@pytest.mark.parametrize("edited_first", [False, True])
@pytest.mark.parametrize("rests", [False, True])
@on_autojump_clock
async def test_an_edited_page_passes_no_other_because_its_template_was_edited_before(
    edited_first, rests
):
    host = make_host()
    if rests:
        visited = VisitedPages(np.array([7, 31]), np.array([NOW - 100.0, NOW - 99.0]))
        host.pages[1] = PageQueue(1, 1, "index", discovery_share=0.5, min_revisit_s=3600.0)
        host.pages[1].load_visited(visited, NOW)
    template = [(7, {"indirect": True, "due": Due.by(NOW - 90.0)})]
    edit = [(7, {"due": Due.of_edit(NOW - 8.0, NOW - 1.0)})]
    host.pages[1].add_hint(31, NOW - 60.0, 0.9, due=Due.of_edit(NOW - 60.0, NOW - 40.0))
    # After a start the hints of a page come in the order of their sources.
    for page, how in edit + template if edited_first else template + edit:
        host.pages[1].add_hint(page, NOW - 8.0, 0.9, **how)
    assert turns(host, 2) == [31, 7]


@on_autojump_clock
async def test_an_important_page_is_due_sooner():
    host = make_host()
    turns(host, 3)
    host.pages[1].set_weight(22, 4.0)
    host.pages[1].set_weight(31, 0.25)
    for number, page in enumerate((31, 7, 22)):
        host.pages[1].add_hint(page, NOW + 3.0 + 2 * number, 0.9)
    assert turns(host, 3, at=NOW + 9.0) == [22, 7, 31]


@on_autojump_clock
async def test_no_edit_starves_while_more_come_than_turns_nearly():
    host = make_host((1, 2, 3))
    found = Arrivals(host)
    rng = np.random.default_rng(4)
    pages = [1000 * site + page for site in range(3) for page in range(1, PAGES + 1)]
    share = 1.0 / np.arange(1, len(pages) + 1) ** 0.8
    rng.shuffle(pages)
    later = []
    for turn in range(2000):
        if rng.random() < 0.8:
            later.append((int(rng.choice(pages, p=share / share.sum())), NOW + turn))
            found.edit(*later[-1])
        if turn % 5:
            found.turn(NOW + turn)
            continue
        for edit in later:  # each fifth turn is a poll
            found.report(*edit, NOW + turn)
        later = []
    assert np.quantile(found.waits, 0.99) < 2 * PROMPT_S
    assert max(found.waits) < PROMPT_S + MISSED_S
    assert np.quantile(found.waits, 0.95) <= PROMPT_S


@on_autojump_clock
async def test_after_an_outage_old_and_new_edits_are_read_in_time():
    host = make_host((1, 2, 3))
    found = Arrivals(host)
    pages = [1000 * site + page for site in range(3) for page in range(1, PAGES + 1)]
    np.random.default_rng(7).shuffle(pages)
    end = NOW + 60.0
    for number in range(30):  # reported when it is over
        found.edit(page := pages.pop(), NOW + 2.0 * number)
        found.report(page, NOW + 2.0 * number, end)
    of_outage = dict(found.waiting)
    visited_at, new_waits = {}, []
    for turn in range(75):
        if turn % 2 == 0:
            found.edit(page := pages.pop(), end + turn)
            found.report(page, end + turn, end + turn)
        if turn % 6:
            page = found.turn(end + turn)
            visited_at[page] = end + turn
            if page not in of_outage:
                new_waits.append(found.waits[-1])
    assert max(visited_at[page] for page in of_outage) - end <= 60.0
    assert max(new_waits) <= PROMPT_S + MISSED_S
    assert np.quantile(new_waits, 0.8) <= PROMPT_S


@on_autojump_clock
async def test_a_host_that_cannot_keep_up_visits_by_value_but_forgets_no_edit():
    host = make_host()
    found, visited = Arrivals(host), []
    for page in range(1, 31):
        found.report(page, NOW - 5.0, NOW)
    for turn in range(700):
        at = NOW + 2 * OVERDUE_S + turn
        for page in (1 + turn % 5, 1 + (turn + 2) % 5, 6 + turn % 25):
            found.report(page, at - 0.5, at)
        visited.append(found.turn(at))
    late = [visited[start : start + 150] for start in range(0, 550, 50)]
    assert all({*range(1, 31)} <= set(part) for part in late)


@on_autojump_clock
async def test_a_site_that_fell_far_behind_leaves_turns_to_another():
    host = make_host((1, 2))
    for page in range(1, PAGES + 1):
        host.pages[1].add_hint(page, NOW - 3 * OVERDUE_S, 0.9)
    for page in range(1001, 1004):
        host.pages[2].add_hint(page, NOW - 3.0, 0.9)
    found = turns(host, 8)
    assert {1001, 1002, 1003} <= set(found)
