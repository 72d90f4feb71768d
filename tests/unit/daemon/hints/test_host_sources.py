"""Which source of a host is polled next, and which one waits."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import trio

from crawld.daemon.clock import Clock
from crawld.daemon.hints.host_sources import (
    FLOOR_FACTOR,
    LISTING_PATIENCE_S,
    MAX_PATIENCE_S,
    HostSources,
    ScheduledSource,
    restored,
)
from crawld.sources.mediawiki_changes import PendingTemplates, ProbeProgress
from tests.unit.daemon.fake_hosts import on_autojump_clock

PRICE_S = 4.0
"""A request a second at a share of a quarter."""

LISTED = PendingTemplates((("Template:Box", 1.0),))


def add(host, number, kind, next_at, *, is_free=False):
    source = SimpleNamespace(row=row(number, kind), is_free=is_free)
    host.polled[number] = ScheduledSource(source, next_at, next_at)
    return host.polled[number]


def row(number, kind, cursor=None):
    return SimpleNamespace(hint_source_id=number, kind=kind, cursor=cursor)


def run(host, pauses_s, *, for_s):
    """Poll for a time; return (time, kind) of each poll, which takes a request and no time."""
    now, polls = 0.0, []
    while now < for_s:
        first = host.next(now)
        if host.due_at(first) > now:
            now = host.due_at(first)
            continue
        kind = first.source.row.kind
        polls.append((now, kind))
        first.next_at = now + pauses_s[kind]
        host.pay(first, now, PRICE_S)
    return polls


def test_recent_changes_come_first_of_all_that_is_due():
    host = HostSources()
    add(host, 1, "fan_out", 1.0)
    add(host, 2, "probe", 2.0)
    add(host, 3, "recent_changes", 3.0)
    assert host.next(5.0).source.row.kind == "recent_changes"
    assert host.next(1.5).source.row.kind == "fan_out"


def test_what_a_back_off_made_dear_is_cheap_when_it_ends():
    host, now = HostSources(), 100.0
    host.relax(now, 1_000 * PRICE_S)
    probe, listing = add(host, 1, "probe", 0.0), add(host, 2, "fan_out", now + 600.0)
    host.pay(probe, now, 1_000 * PRICE_S)
    probe.allowed_at = probe.next_at = host.paid_at
    probe.is_priced = True
    assert not host.relax(now, 1_000 * PRICE_S)
    assert host.due_at(probe) == now + 1_000 * PRICE_S
    assert host.relax(now, PRICE_S)
    assert probe.allowed_at == probe.next_at == host.paid_at == now + PRICE_S
    assert host.floor_at == now + FLOOR_FACTOR * PRICE_S
    assert listing.next_at == now + 600.0  # it waits for something else
    assert not host.relax(now, 1_000 * PRICE_S)
    assert host.due_at(probe) == now + PRICE_S


def test_all_sources_of_a_host_share_one_budget_and_recent_changes_keep_their_pace():
    host = HostSources()
    for number, kind in enumerate(("recent_changes", "fan_out", "probe")):
        add(host, number, kind, 0.0)
    pauses_s = {"recent_changes": 5.0, "fan_out": 4.0, "probe": 4.0}
    polls = run(host, pauses_s, for_s=600.0)
    assert len(polls) == pytest.approx(600 / PRICE_S, abs=3)
    times = [at for at, kind in polls if kind == "recent_changes"]
    assert times == [5.0 * number for number in range(120)]
    assert {kind for _, kind in polls} == set(pauses_s)


@pytest.mark.parametrize("pause_s", [1.0, 4.0, 5.0])
def test_recent_changes_that_use_up_the_share_starve_no_other_source(pause_s):
    host = HostSources()
    for number, kind in enumerate(("recent_changes", "fan_out", "probe")):
        add(host, number, kind, 0.0)
    pauses_s = {"recent_changes": pause_s, "fan_out": 4.0, "probe": 4.0}
    polls = run(host, pauses_s, for_s=600.0)
    kinds = [kind for _, kind in polls]
    assert kinds.count("recent_changes") == 600 / pause_s
    others = [kinds.count(kind) for kind in ("fan_out", "probe")]
    assert sum(others) == pytest.approx(600 / (FLOOR_FACTOR * PRICE_S), abs=2)
    assert abs(others[0] - others[1]) <= 1


@pytest.mark.parametrize("pause_s", [4.0, 5.0])
def test_a_probe_after_a_gap_takes_turns_of_the_recent_changes(pause_s):
    host = HostSources()
    add(host, 1, "recent_changes", 0.0)
    add(host, 2, "fan_out", 0.0)
    probe = add(host, 3, "probe", 0.0)
    probe.reschedule(ProbeProgress(urgent=True).to_json(), 0.0)
    polls = run(host, {"recent_changes": pause_s, "fan_out": 4.0, "probe": 8.0}, for_s=600.0)
    kinds = [kind for _, kind in polls]
    assert kinds.count("probe") == 75
    assert 50 <= kinds.count("recent_changes") <= 80
    # The share of the requests is that of before: one in four seconds.
    assert len(polls) == pytest.approx(600 / PRICE_S, rel=0.2)
    probe.advance(ProbeProgress(urgent=False).to_json())
    assert not probe.is_urgent


def test_a_source_without_requests_waits_for_no_budget():
    host = HostSources()
    free = add(host, 1, "gap", 1.0, is_free=True)
    host.pay(add(host, 2, "sitemap", 0.0), 0.0, 100.0)
    assert host.due_at(free) == 1.0


def puts_off(host, probe, now, *, stale=True, urgent=False):
    cursor = ProbeProgress(urgent=urgent).to_json()
    wait_s = host.puts_off(probe, row(2, "probe", cursor), now, stale=stale, edited=False)
    return wait_s is not None


def test_a_probe_waits_while_copies_are_stale_but_not_for_ever():
    host = HostSources()
    changes, probe = add(host, 1, "recent_changes", 0.0), add(host, 2, "probe", 0.0)
    assert not puts_off(host, probe, 0.0)  # the only source that asks
    changes.asked = True
    assert not puts_off(host, probe, 0.0, stale=False)
    assert not puts_off(host, probe, 0.0, urgent=True)
    answers = []
    for turn in range(100):
        probe.next_at = 15.0 * turn
        answers.append(puts_off(host, probe, probe.next_at))
    assert answers.count(False) == pytest.approx(1500.0 / MAX_PATIENCE_S, abs=1)
    assert answers[0]
    waits = host.puts_off(changes, row(1, "recent_changes"), 0.0, stale=True, edited=True)
    assert waits is None


def test_a_listing_waits_while_edited_pages_do_but_not_for_ever():
    host = HostSources()
    add(host, 1, "recent_changes", 1000.0).asked = True
    listing = add(host, 2, "fan_out", 0.0)

    def wait_s(now, *, edited=True, pending=LISTED):
        given = row(2, "fan_out", pending.to_json())
        return host.puts_off(listing, given, now, stale=True, edited=edited)

    assert wait_s(0.0, edited=False) is None
    assert wait_s(0.0, pending=replace(LISTED, pages=((1, 1.0, 1.0),))) is None
    answers = []
    for second in range(210):
        answers.append(wait_s(1.0 * second))
        listing.next_at = second + 1.0
    assert answers.count(None) == pytest.approx(210 / LISTING_PATIENCE_S, abs=1)
    assert 0 < answers[0] <= 2.0
    listing.next_at = 300.0  # then it waited for its budget
    assert wait_s(300.0 + LISTING_PATIENCE_S) is None


@pytest.mark.parametrize("before", [PendingTemplates(), LISTED])
def test_the_patience_of_a_listing_begins_with_its_template(before):
    host = HostSources()
    add(host, 1, "recent_changes", 1000.0).asked = True
    listing = add(host, 2, "fan_out", 0.0)

    def is_put_off(now, pending):
        listing.next_at = now
        given = row(2, "fan_out", pending.to_json())
        return host.puts_off(listing, given, now, stale=True, edited=True) is not None

    assert all(is_put_off(1.0 * second, before) for second in range(int(LISTING_PATIENCE_S)))
    began_at = LISTING_PATIENCE_S - 0.5
    other = PendingTemplates((("Template:Other", 2.0),))
    assert is_put_off(began_at, other)
    assert is_put_off(began_at + LISTING_PATIENCE_S - 1.0, other)
    assert not is_put_off(began_at + LISTING_PATIENCE_S, other)


@pytest.mark.parametrize(
    ("poll_in_s", "pending", "waits"),
    [
        (LISTING_PATIENCE_S, LISTED, True),
        (-1.0, LISTED, True),  # the poll is under way
        (LISTING_PATIENCE_S + 1.0, LISTED, False),
        (5.0, replace(LISTED, continuation={"eicontinue": "3", "continue": "-||"}), False),
        (5.0, replace(LISTED, pages=((1, 1.0, 1.0),)), False),
        (5.0, PendingTemplates(), False),
    ],
)
def test_a_listing_waits_for_a_poll_that_takes_it_along(poll_in_s, pending, waits):
    host, now = HostSources(), 300.0
    add(host, 1, "recent_changes", now + poll_in_s).asked = True
    listing = add(host, 2, "fan_out", now)
    given = row(2, "fan_out", pending.to_json())
    assert (host.puts_off(listing, given, now, stale=True, edited=False) is not None) == waits
    # A host that has nothing to do lists at once.
    assert host.puts_off(listing, given, now, stale=False, edited=False) is None


@on_autojump_clock
async def test_a_start_continues_the_wait_of_a_listing():
    wall, now = 1000.0, trio.current_time()
    clock = Clock(wall=lambda: wall)
    host = HostSources()
    add(host, 1, "recent_changes", now).asked = True

    def wait_s(waited_s):
        templates = ("Template:New", wall), ("Template:Old", wall - waited_s)
        given = row(2, "fan_out", PendingTemplates(templates).to_json())
        listing = restored(SimpleNamespace(row=given, is_free=False), now, now, clock)
        return host.puts_off(listing, given, now, stale=True, edited=True)

    assert wait_s(LISTING_PATIENCE_S + 1.0) is None
    assert wait_s(LISTING_PATIENCE_S - 1.0) is not None
    assert wait_s(-5.0) is not None  # the wiki's clock is ahead
    empty = row(2, "fan_out", PendingTemplates().to_json())
    assert restored(SimpleNamespace(row=empty), now, now, clock).put_off_at is None
