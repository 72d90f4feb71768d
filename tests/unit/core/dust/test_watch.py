import doctest

import pytest

from crawld.core.dust import watch
from crawld.core.dust.learning import ContestedUrls
from crawld.core.dust.rewrite import Rewrite, RewriteForm
from crawld.core.dust.rules import DustRule
from crawld.core.dust.trial import HOLDS_FROM
from crawld.core.dust.watch import (
    LOOKS_SHARE,
    SURE_PAIRS,
    WATCHED_BAD_SHARE,
    WATCHED_GOOD_SHARE,
    VisitShares,
    WatchedRule,
    first_score,
    looks_of,
    watch_pair,
)


def withdrawn_within(share, pairs):
    """Return the exact probability that a rule is withdrawn within so many pairs."""
    withdrawn, there = 0.0, {round(HOLDS_FROM, 9): 1.0}
    for _ in range(pairs):
        after = {}
        for score, probability in there.items():
            for equal, weight in ((True, 1.0 - share), (False, share)):
                [rule] = watch_pair([WatchedRule(score=score)], equal=equal)
                if rule.is_withdrawn:
                    withdrawn += probability * weight
                elif probability > 1e-9:
                    key = round(rule.score, 9)
                    after[key] = after.get(key, 0.0) + probability * weight
        there = after
    return withdrawn


def test_a_rule_that_is_wrong_for_few_urls_is_soon_withdrawn():
    assert withdrawn_within(WATCHED_BAD_SHARE, 100) > 0.9
    assert withdrawn_within(0.10, 40) > 0.9
    assert withdrawn_within(0.5, 10) > 0.98


def test_a_rule_that_is_right_stays():
    assert withdrawn_within(0.0, 1_000) == 0.0
    assert withdrawn_within(WATCHED_GOOD_SHARE, 200) < 0.03


def test_one_difference_withdraws_no_rule_and_is_forgotten():
    [rule] = watch_pair([WatchedRule()], equal=False)
    assert not rule.is_withdrawn
    for _ in range(70):
        [rule] = watch_pair([rule], equal=True)
    assert rule.score == HOLDS_FROM
    [rule] = watch_pair(watch_pair([rule], equal=False), equal=False)
    assert rule.is_withdrawn


@pytest.mark.parametrize("order", [1, -1])
def test_the_rule_with_most_differing_pairs_is_blamed(order):
    right, wrong = WatchedRule(equal=200, differing=2), WatchedRule(equal=20, differing=2)
    for _ in range(2):
        right, wrong = watch_pair([right, wrong][::order], equal=False)[::order]
    assert wrong.is_withdrawn
    assert right.score == HOLDS_FROM
    assert (right.differing, wrong.differing) == (4, 4)


def test_rules_that_are_about_as_suspect_are_blamed_together():
    pairs = [WatchedRule(equal=40), WatchedRule(equal=60), WatchedRule(equal=200)]
    for _ in range(2):
        pairs = watch_pair(pairs, equal=False)
    assert [one.is_withdrawn for one in pairs] == [True, True, False]


def test_a_pair_without_a_rule_changes_nothing():
    assert watch_pair([], equal=False) == []


def test_a_rule_that_passed_with_differences_has_less_left():
    assert first_score(0) == HOLDS_FROM
    [rule] = watch_pair([WatchedRule(score=first_score(1))], equal=False)
    assert rule.is_withdrawn


def test_examples():
    assert doctest.testmod(watch).failed == 0


def test_unsure_rules_share_the_visits_that_trials_left():
    rules = {"few": WatchedRule(equal=20), "some": WatchedRule(equal=60)}
    assert looks_of(rules, 50) == {"few": 25, "some": 25}
    assert looks_of(rules, 100) == {"few": 50, "some": 40}
    assert looks_of(rules, 0) == {"few": 0, "some": 0}


def test_looks_get_their_share_of_visits_that_come_one_by_one():
    """Divided one by one and rounded, one of the two got all of them."""
    shares, unsure, trials, looks = VisitShares(), [WatchedRule(equal=20)], 0, 0
    shares.grow(50, unsure)
    for visits in range(51, 151):
        shares.grow(visits, unsure)
        trials += shares.for_trials(visits - 50 - trials - looks)
        looks += shares.for_looks(visits - 50 - trials - looks, trials_go_on=True)
    assert trials + looks == 100
    assert looks == pytest.approx(100 * LOOKS_SHARE, abs=1)


def test_trials_get_all_visits_before_a_rule_and_when_all_rules_are_sure():
    shares = VisitShares()
    for visits, rules in ((50, []), (80, []), (100, [WatchedRule(equal=SURE_PAIRS)])):
        shares.grow(visits, rules)
        assert shares.for_trials(30) == 30
    assert shares.for_trials(-3) == 0


def test_looks_get_what_trials_do_not_want():
    shares = VisitShares()
    shares.grow(100, [])
    shares.grow(110, [WatchedRule(equal=20)])
    assert shares.for_trials(10) == 7
    assert shares.for_looks(10, trials_go_on=False) == 10
    assert shares.for_trials(10) == 10


def test_a_rule_with_a_difference_is_looked_at_first():
    rules = {"few": WatchedRule(equal=20), "doubtful": WatchedRule(equal=60, differing=1)}
    assert list(looks_of(rules, 1).items()) == [("doubtful", 1), ("few", 0)]


def test_a_rule_with_a_difference_is_looked_at_until_it_is_forgotten():
    [doubtful] = watch_pair([WatchedRule(equal=SURE_PAIRS)], equal=False)
    assert looks_of({"sure": WatchedRule(equal=20), "doubtful": doubtful}, 30) == {
        "doubtful": 30,
        "sure": 0,
    }
    wanted = doubtful.wanted_pairs
    assert 50 < wanted < 100
    for _ in range(wanted):
        assert doubtful.wanted_pairs
        [doubtful] = watch_pair([doubtful], equal=True)
    assert not doubtful.wanted_pairs


def test_a_rule_of_which_many_pairs_were_compared_takes_no_visits():
    assert looks_of({"sure": WatchedRule(equal=SURE_PAIRS)}, 1_000) == {}


def test_a_difference_where_a_parameter_counts_is_that_of_its_rule():
    by_variant = DustRule(Rewrite(RewriteForm.VALUE, "variant", "1"), "item")
    other = DustRule(Rewrite(RewriteForm.VALUE, "variant", "2"), "item")
    sort = DustRule(Rewrite(RewriteForm.SORT), "item")
    contested = ContestedUrls([(other, "/item/12"), (sort, "/item/24")])
    assert contested.by([by_variant, sort], "/item/12") == [True, False]
    assert contested.by([by_variant, sort], "/item/24") == [False, False]
    assert contested.by([by_variant._replace(section="list")], "/item/12") == [False]
    # The rule that is older, and right, is not withdrawn with the one that is wrong.
    rules = [WatchedRule(equal=40), WatchedRule(equal=25)]
    for _ in range(2):
        doubted = contested.by([by_variant, sort], "/item/12")
        rules = watch_pair(rules, equal=False, doubted=doubted)
    assert [one.is_withdrawn for one in rules] == [True, False]
