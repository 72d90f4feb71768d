"""Figures: what changes by itself on one host, and is no noise on two."""

import random
from math import inf

import pytest

from crawld.core.content.analysis import read_blocks
from crawld.core.content.figures import LEAST_OBSERVED, TwinNoise, number_change, twin_rules
from crawld.core.content.noise_learning import ReadingPair
from crawld.core.content.twin import twin_text
from crawld.core.content.volatile import NO_RULES, VolatileRules

STABLE = "<p>A steady paragraph about rivers and their long banks in 1999.</p>"
PAGES = 6
NO_RANGE = (-inf, inf)


@pytest.mark.parametrize(
    ("old", "new", "numbers", "only_times"),
    [
        ("Viewed 1,234 times", "Viewed 1,236 times", (1234.0, 1236.0), False),
        ("at 10:15 it has 9.5 degrees", "at 11:20 it has 7 degrees", (9.5, 7.0), False),
        ("Saturday, 28 November 2026", "Sunday, 29 November 2026", (), True),
        ("made on 2026-01-05 at 12:30:11", "made on 2026-01-06 at 08:00:00", (), True),
        ("made in 0.12 seconds", "made in 0.31 seconds", (), True),
        ("3 minutes ago", "5 minutes ago", (), True),
        ("number a12", "number a13", NO_RANGE, False),
        ("cloudy", "sunny", NO_RANGE, False),
        ("x 1 " * 1_000, "x 2 " * 1_000, NO_RANGE, False),
    ],
)
def test_what_differs(old, new, numbers, only_times):
    change = number_change(("same", old), ("same", new))
    assert (change.numbers, change.only_times) == (numbers, only_times)
    assert number_change((old,), (new, new)).numbers == NO_RANGE


class Host:
    """A host whose pages are read as the daemon does: twice at first, then again on later days."""

    def __init__(self, show, *, twice=True, days=8):
        self.show, self.rules, self.own = show, NO_RULES, [NO_RULES] * PAGES
        for page in range(PAGES if twice else 0):
            self.read(page, (0.0, 0.001), pair=1)
        for day in range(1, days):
            for page in range(PAGES):
                self.read(page, (day - 1.0, float(day)))
                if twice and day == 3:
                    self.read(page, (float(day), day + 0.001), pair=1)

    def blocks(self, page, day):
        return read_blocks(f"<html><body>{STABLE}<p>{self.show(page, day)}".encode(), "text/html")

    def read(self, page, days, pair=0):
        readings = ReadingPair.of(*(self.blocks(page, day) for day in days))
        own = self.own[page]
        self.rules = readings.learn_host(self.rules, page_key=page, own=own, pair=pair)
        self.own[page] = readings.learn(own, pair=pair)

    def noise(self, page):
        return TwinNoise(*(stored(rules) for rules in (self.own[page], self.rules)))


def stored(rules):
    assert VolatileRules.from_bytes(rules.to_bytes()) == rules
    return rules


def agree(one, other, *, read_twice=True, day=9.0):
    """Whether all pages of two hosts have one text on one day."""
    found = set()
    for page in range(PAGES):
        rules = twin_rules(one.noise(page), other.noise(page), read_twice=read_twice)
        texts = {
            twin_text(host.blocks(page, day), "http://a.test/x", (), rules) for host in (one, other)
        }
        found.add(len(texts) == 1)
    return found == {True}


def drawn(low, high, *key):
    return random.Random(repr(key)).uniform(low, high)


def weather(town):
    return lambda page, day: f"It has {drawn(-9, 30, town, page, int(day)):.0f} degrees"


def rates(hall, level):
    return lambda page, day: f"Our rate is {drawn(level, level + 1, hall, page, day):.4f} today"


def online(host):
    return lambda page, day: f"{drawn(2, 90, host, page, day):.0f} users are here"


def counter(start):
    return lambda page, day: f"You are visitor {start + page + int(day * 86_400)} of ours"


def advertised(number):
    """Return a show of other words and numbers each time, seldom in one form."""
    sales = ("{} % off", "Win {} euros", "No offers today", "Ask us", "Only {} left")

    def show(page, day):
        sale = sales[int(drawn(0, len(sales), number, page, day, "sale"))]
        return f"Welcome<div class=ad>{sale.format(int(drawn(2, 900, number, page, day)))}</div>"

    return show


def dated(_):
    return lambda page, day: f"Day {int(day)}, {1 + int(day)} November 2026, page {page}"


def test_figures_of_the_day_are_no_noise_on_two_hosts():
    towns = [Host(weather(town)) for town in ("bath", "kent")]
    rule = next(rule for rule in towns[0].rules.rules if rule.confirmed)
    assert rule.stayed > rule.at_once  # the host knows it as noise of its own
    assert not agree(*towns)
    assert agree(towns[0], Host(weather("bath")))


@pytest.mark.parametrize("between", ["</div>y<div class=now>", ": ", "</b> <b>"])
def test_a_clock_beside_a_figure_does_not_hide_it(between):
    def station(town):
        def show(page, day):
            second = int(day * 86_400)
            clock = f"Now {second // 3_600 % 24:02}:{page:02}:{second % 60:02}"
            return f"x<div class=now>{clock}{between}{weather(town)(page, day)}</div>"

        return Host(show)

    assert not agree(station("bath"), station("kent"))
    assert agree(station("bath"), station("bath"))


def test_a_counter_at_the_place_of_a_figure_does_not_hide_it():
    def station(town):
        def show(page, day):
            temperature = f"{weather(town)(page, day)}</div>z"
            return f"x<div class=now>{counter(0)(page, day)}</div>y<div class=now>{temperature}"

        return Host(show)

    assert not agree(station("bath"), station("kent"))
    assert agree(station("bath"), station("bath"))


def test_figures_that_differ_at_once_are_noise_in_one_range_only():
    assert not agree(Host(rates("zurich", 1.0)), Host(rates("london", 2.0)))
    # Two mirrors with other readers cannot be told from two halls with one range.
    assert agree(Host(rates("zurich", 1.0)), Host(rates("london", 1.0)))
    assert agree(Host(online("one")), Host(online("other")))


def test_a_number_that_all_pages_show_alike_is_a_stamp_in_any_range():
    def readers(host, low):
        return lambda page, day: f"{drawn(low, 2 * low, host, day):.0f} users are here"

    assert agree(Host(readers("one", 2)), Host(readers("other", 50)))


def test_ranges_of_hosts_count_at_once_and_those_of_pages_from_some_differences_on():
    early = [Host(rates(*hall), days=1) for hall in (("zurich", 1.0), ("london", 2.0))]
    assert not agree(*early)
    # Each page has a level of its own, so that both hosts have one range.
    paged = [
        lambda page, day, at=at: rates(at, 1.0 + 4 * page + 2 * at)(page, day) for at in (0, 1)
    ]
    assert agree(*(Host(show, days=LEAST_OBSERVED - 2) for show in paged))
    assert not agree(*(Host(show, days=LEAST_OBSERVED + 2) for show in paged))


@pytest.mark.parametrize("start", [0, 5_000_000])
def test_counters_are_noise_wherever_they_stand(start):
    assert agree(Host(counter(0)), Host(counter(start)))


def test_what_differs_in_words_too_has_no_range():
    hosts = [Host(advertised(number), days=30) for number in range(6)]
    assert all(agree(hosts[0], host) for host in hosts)


def test_dates_are_noise_although_they_stay_for_a_day():
    assert agree(Host(dated(0)), Host(dated(0)))


def test_without_two_readings_at_once_nothing_tells_figures():
    towns = [Host(weather(town), twice=False) for town in ("bath", "kent")]
    assert agree(*towns, read_twice=False)
    assert not agree(*towns)
