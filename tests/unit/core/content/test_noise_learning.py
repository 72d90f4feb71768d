"""Real edits are distinguished from noise on every page."""

import itertools
import random
from collections import Counter

import pytest

from crawld.core.content.analysis import difference_of, read_blocks
from crawld.core.content.blocks import Blocks
from crawld.core.content.figures import is_figure
from crawld.core.content.fingerprint import digest
from crawld.core.content.noise_learning import ReadingPair
from crawld.core.content.volatile import NO_RULES, VolatileRules
from tests.unit.core.content.noisy_site import Page
from tests.unit.steps import assert_linear

PAGES, ROUNDS = 30, 30
HOST_DELAY_S, ROUND_S = 15.0, 6 * 3600.0
EDIT_SHARE = 0.3


def crawl(seed: int) -> Counter:
    """Visit a noisy site in rounds, as the daemon does; return counts of correct verdicts."""
    rng, noise = random.Random(seed), random.Random(seed + 1)
    pages = [Page(rng, f"Article about {n}") for n in range(PAGES)]
    host, rules = VolatileRules(), [VolatileRules()] * PAGES
    last = []
    count: Counter = Counter()
    for key, page in enumerate(pages):
        at = key * HOST_DELAY_S * 2
        first = read_blocks(page.render(noise, at))
        second = read_blocks(page.render(noise, at + HOST_DELAY_S))
        rules[key] = ReadingPair.of(first, second).learn(rules[key], pair=True)
        host = ReadingPair.of(first, second).learn_host(host, page_key=key, own=NO_RULES, pair=True)
        last.append((second, b""))
    for number in range(1, ROUNDS + 1):
        for key, page in enumerate(pages):
            kind = page.edit() if rng.random() < EDIT_SHARE else None
            body = page.render(noise, number * ROUND_S + key * HOST_DELAY_S)
            new, old = read_blocks(body, "text/html"), last[key][0]
            found = difference_of(old, new, rules[key] | host) > 0
            count["edits" if kind else "still"] += 1
            count[kind] += 1
            count["found" if kind else "false"] += found
            count["missed " + str(kind)] += bool(kind) and not found
            count["exact"] += digest(body) != last[key][1]
            readings = ReadingPair.of(old, new)
            host = readings.learn_host(host, page_key=key, own=rules[key])
            rules[key] = readings.learn(rules[key])
            last[key] = (new, digest(body))
    count["most bytes"] = max(len(r.to_bytes()) for r in rules)
    return count


def test_real_edits_are_found_and_noise_is_not():
    count = sum((crawl(seed) for seed in (1, 2)), Counter())
    assert count["digits"] >= 0.1 * count["edits"]
    assert count["delete"] >= 0.05 * count["edits"]
    assert count["found"] >= 0.99 * count["edits"], count
    assert count["false"] <= 0.01 * count["still"], count
    # By exact digests every page changes at every visit.
    assert count["exact"] == count["edits"] + count["still"]
    assert count["most bytes"] <= 2 * 16 * 35


def blocks(*bodies: str):
    return [read_blocks(f"<html><body>{body}".encode()) for body in bodies]


STABLE = "<p>A steady paragraph about rivers and their long banks in 1999.</p>"


def test_a_pair_confirms_at_once_and_masks_numbers_only():
    old, new, edit = blocks(
        STABLE + "<p>Viewed 10 times</p>",
        STABLE + "<p>Viewed 11 times</p>",
        STABLE.replace("1999", "1998") + "<p>Viewed 12 times</p>",
    )
    rules = ReadingPair.of(old, new).learn(VolatileRules(), pair=True)
    assert difference_of(old, new, rules) == 0
    assert difference_of(old, edit, rules) > 0
    assert difference_of(old, blocks(STABLE + "<p>Seen 11 times</p>")[0], rules) > 0


def test_a_pair_with_time_for_an_edit_confirms_at_its_second_difference():
    readings = blocks(*(f"{STABLE}<p>Viewed {n} times</p>" for n in range(4)))
    rules = ReadingPair.of(readings[0], readings[1]).learn(VolatileRules(), pair=2)
    assert difference_of(readings[1], readings[2], rules) > 0
    again = ReadingPair.of(readings[1], readings[2]).learn(rules, pair=2)
    assert difference_of(readings[2], readings[3], again) == 0
    stayed = ReadingPair.of(readings[1], readings[1]).learn(rules, pair=2)
    edited = ReadingPair.of(readings[1], readings[2]).learn(stayed, pair=2)
    assert difference_of(readings[2], readings[3], edited) > 0


@pytest.mark.parametrize(
    ("third", "pair", "is_noise"), [(11, 1, False), (12, 1, True), (11, 0, False), (12, 0, False)]
)
def test_a_third_reading_tells_an_edit_between_those_of_a_pair_from_noise(third, pair, is_noise):
    held, second, last, later = blocks(*(f"{STABLE}<p>Page {n}</p>" for n in (10, 11, third, 20)))
    own = ReadingPair.of(held, second).learn(VolatileRules(), pair=1)
    template = ReadingPair.of(held, second).learn_host(
        VolatileRules(), page_key=1, own=VolatileRules(), pair=1
    )
    assert difference_of(held, second, own) == 0
    readings = ReadingPair.of(held, last)
    template = readings.learn_host(template, page_key=1, own=own, pair=pair, is_third=True)
    own = readings.learn(own, pair=pair, is_third=True)
    assert (difference_of(held, last, own) == 0) == is_noise
    assert (difference_of(last, later, own) == 0) == is_noise
    assert [is_figure(rule, read_twice=True) for rule in template.rules] == [not is_noise]
    # What visits have proved, no edit disproves.
    for old, new in itertools.pairwise(blocks(*(f"{STABLE}<p>Page {n}</p>" for n in range(5)))):
        own = ReadingPair.of(old, new).learn(own)
    assert difference_of(last, later, own) == 0


def test_evidence_stays_within_its_stored_form_however_many_edits_a_host_sees():
    held, edited = blocks(*(f"{STABLE}<p>Page {n}</p>" for n in (10, 11)))
    readings, equal, template = ReadingPair.of(held, edited), ReadingPair.of(held, held), NO_RULES
    for key in range(300):
        template = equal.learn_host(template, page_key=key, own=NO_RULES, pair=1)
        for is_third in (False, True):
            template = readings.learn_host(
                template, page_key=key, own=NO_RULES, pair=1, is_third=is_third
            )
            assert VolatileRules.from_bytes(template.to_bytes()) == template
            assert all(rule.differed <= rule.seen for rule in template.rules)


def test_visits_confirm_only_what_differs_every_time():
    rules = VolatileRules()
    readings = blocks(*(f"{STABLE}<p>Viewed {n} times</p>" for n in range(6)))
    for number, (old, new) in enumerate(itertools.pairwise(readings), start=1):
        rules = ReadingPair.of(old, new).learn(rules)
        assert (difference_of(old, new, rules) == 0) == (number >= 4)


def test_a_rule_that_stops_differing_is_dropped():
    old, new, edit = blocks(*(f"{STABLE}<p>Viewed {n} times</p>" for n in range(3)))
    rules = ReadingPair.of(old, new).learn(VolatileRules(), pair=True)
    for _ in range(8):
        rules = ReadingPair.of(new, new).learn(rules)
    assert difference_of(new, edit, rules) > 0


def test_an_advertisement_without_container_is_a_slot():
    first, second, third, inserted = blocks(
        f"{STABLE}<p>Buy shoes</p><p>End of it</p>",
        f"{STABLE}<p>Eat cake</p><p>End of it</p>",
        f"{STABLE}<p>Fly away</p><p>End of it</p>",
        f"{STABLE}<p>News today</p><p>Fly away</p><p>End of it</p>",
    )
    rules = ReadingPair.of(first, second).learn(VolatileRules(), pair=True)
    assert difference_of(second, third, rules) == 0
    assert difference_of(third, inserted, rules) > 0


def test_pairs_of_five_pages_prove_noise_of_the_host():
    host = VolatileRules()
    for key in range(5):
        old, new = blocks(f"{STABLE}<div>Ad {key}</div>", f"{STABLE}<div>Buy {key} cakes</div>")
        host = ReadingPair.of(old, new).learn_host(host, page_key=key, own=NO_RULES, pair=True)
        assert len(host.confirmed().rules) == (key == 4)


def test_a_page_that_is_all_noise_stays_a_changing_page():
    rng = random.Random(5)
    readings = blocks(*(f"<p>{rng.random()} {rng.choice('abcdefgh') * 9}</p>" for _ in range(12)))
    rules = VolatileRules()
    for old, new in itertools.pairwise(readings):
        rules = ReadingPair.of(old, new).learn(rules, pair=True)
    assert any(difference_of(old, new, rules) > 0 for old, new in itertools.pairwise(readings))


def test_edited_scores_are_not_a_template():
    rng, host = random.Random(3), VolatileRules()
    own = [VolatileRules()] * 20
    for number in range(200):
        score = [rng.randint(0, 9), rng.randint(0, 9)]
        edited = score if rng.random() > 0.3 else [score[0] + 10, score[1]]
        body = "{}<p>The score is {}</p><p>And {} again</p>"
        old, new = blocks(body.format(STABLE, score, 1), body.format(STABLE, edited, 1))
        if number > 20 and edited != score:
            assert difference_of(old, new, host) > 0
        readings, key = ReadingPair.of(old, new), number % 20
        host = readings.learn_host(host, page_key=key, own=own[key])
        own[key] = readings.learn(own[key])


def learn_host_of(readings, *, rules=None, own=None, reported=True):
    """Return the rules of the host, and of each page, after one more reading of each page."""
    host, own = rules or VolatileRules(), own or [VolatileRules()] * len(readings)
    for key, (old, new) in enumerate(readings):
        pair = ReadingPair.of(*blocks(old, new))
        host = pair.learn_host(host, page_key=key, own=own[key], reported=reported)
        own[key] = pair.learn(own[key])
    return host, own


BOXES = (
    "<div class=box>Box of page {page}, in all {edit} words</div>",
    "<div>{edit} words about the box</div>",
    "<p>{edit}</p>",
)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("reported", [True, False])
def test_one_edit_of_a_template_is_no_noise(box, reported):
    def reading(page, edit):
        return f"<p>Text {'of ' * page}it.</p>{STABLE}{box.format(page=page, edit=edit)}<hr>End"

    host, own = learn_host_of(
        [(reading(page, "old"), reading(page, "new")) for page in range(40)], reported=reported
    )
    assert difference_of(*blocks(reading(50, "old"), reading(50, "new")), host) > 0
    # Nor are later ones, if the pages answered 304 in between.
    for old, new in itertools.pairwise(["new", "next", "further", "latest"]):
        host, own = learn_host_of(
            [(reading(page, old), reading(page, new)) for page in range(40)],
            rules=host,
            own=[each.rested() for each in own],
            reported=reported,
        )
    assert difference_of(*blocks(reading(50, "a"), reading(50, "b")), host) > 0
    assert not host.confirmed().rules


@pytest.mark.parametrize("reported", [True, False])
def test_numbers_of_all_pages_are_a_stamp_unless_a_source_tells(reported):
    def reading(page, day):
        return f"{STABLE}<p>Text {'of ' * page}a page.</p><p>Printed on day {day}</p>"

    host, own = learn_host_of([(reading(p, 1), reading(p, 2)) for p in range(9)], reported=reported)
    host, _ = learn_host_of([(reading(p, 2), reading(p, 2)) for p in range(5)], rules=host, own=own)
    assert (difference_of(*blocks(reading(50, 1), reading(50, 2)), host) > 0) is reported
    assert difference_of(*blocks(reading(50, 1), reading(51, 1)), host) > 0


@pytest.mark.parametrize("box", BOXES)
def test_what_differs_again_on_three_pages_is_noise_of_the_host(box):
    def reading(page, edit):
        return f"<p>Text {'of ' * page}it.</p>{STABLE}{box.format(page=page, edit=edit)}<hr>End"

    host, own = None, None
    for old, new in itertools.pairwise(["apple", "pear", "plum", "grape"]):
        host, own = learn_host_of(
            [(reading(p, old), reading(p, new)) for p in range(5)], rules=host, own=own
        )
    assert difference_of(*blocks(reading(50, "fig"), reading(50, "kiwi")), host) == 0


def test_rules_survive_storage_and_joining():
    old, new = blocks(
        f"{STABLE}<div class=ad>x y</div><p>Viewed 1 time</p>",
        f"{STABLE}<div class=ad>z</div><p>Viewed 2 times</p>",
    )
    rules = ReadingPair.of(old, new).learn(VolatileRules(), pair=True)
    assert VolatileRules.from_bytes(rules.to_bytes()) == rules
    assert VolatileRules.from_bytes(rules.to_bytes() + b"half") == rules
    assert VolatileRules.from_bytes(b"\xff" * 35) == VolatileRules()
    assert (rules | VolatileRules()).rules == rules.rules
    assert {r.key for r in (rules | rules).rules} == {r.key for r in rules.rules}
    assert difference_of(old, new, VolatileRules() | rules) == difference_of(old, new, rules)


@pytest.mark.parametrize(
    "text",
    [
        lambda i, edition: "x" if i % 2 else f"word{i} {edition}",
        lambda i, edition: (
            "x" if i % 3 == 0 else chr(97 + i % 26) * (i % 40 + i % 3 * len(edition))
        ),
        lambda i, edition: ("x", edition + chr(0x4E00 + i), chr(0x4E00 + i))[i % 3],
    ],
    ids=["every second block", "common neighbors", "unique neighbors"],
)
def test_the_work_on_many_blocks_of_one_place_is_linear(text):
    def readings(count):
        return [
            Blocks(tuple(text(i, edition) for i in range(count)), (7,) * count)
            for edition in ("old", "newer")
        ]

    def learn(blocks):
        pair = ReadingPair.of(*blocks)
        rules = pair.learn(VolatileRules(), pair=True)
        pair.learn_host(pair.learn(rules, pair=True), page_key=1, own=rules)

    assert_linear(readings, learn, size=600, doublings=2, factor=2.4)
