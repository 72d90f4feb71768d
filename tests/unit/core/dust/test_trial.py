import doctest

import pytest

from crawld.core.dust import trial
from crawld.core.dust.learning import ComparedPair, HostTrials
from crawld.core.dust.likely import sections_of
from crawld.core.dust.rewrite import Rewrite, RewriteForm
from crawld.core.dust.rules import DustRule, HostRules
from crawld.core.dust.trial import (
    BAD_SHARE,
    FALSE_RULE,
    HOLDS_FROM,
    SECTION_PAIRS,
    TrialEvidence,
    TrialResult,
    extra_fetches,
    judge_trial,
)

NOTHING = TrialEvidence()


def pass_probability(share):
    """Return the exact probability that a rewrite passes that is wrong for a share of its URLs."""
    passed, open_ = 0.0, {NOTHING: 1.0}
    for _ in range(400):
        after = {}
        for evidence, probability in open_.items():
            for step, weight in ((TrialEvidence(1, 0), 1 - share), (TrialEvidence(0, 1), share)):
                one = evidence + step
                result = judge_trial(one, NOTHING)
                if result is TrialResult.HOLDS:
                    passed += probability * weight
                elif result is TrialResult.OPEN:
                    after[one] = after.get(one, 0.0) + probability * weight
        open_ = after
    return passed


def test_the_stated_bound_holds():
    assert pass_probability(BAD_SHARE) <= FALSE_RULE
    assert pass_probability(0.5) < 1e-6
    assert pass_probability(0.0) == 1.0


def test_a_section_borrows_evidence_only_while_nothing_differs():
    own = TrialEvidence(equal=SECTION_PAIRS)
    assert judge_trial(own, NOTHING) is TrialResult.OPEN
    assert judge_trial(own, TrialEvidence(equal=20)) is TrialResult.HOLDS
    assert judge_trial(own, TrialEvidence(equal=200, differing=1)) is TrialResult.OPEN
    assert (
        judge_trial(TrialEvidence(equal=SECTION_PAIRS - 1), TrialEvidence(equal=99))
        is TrialResult.OPEN
    )
    assert judge_trial(TrialEvidence(differing=1), NOTHING) is TrialResult.FAILS


def test_repeated_texts_are_enough_where_other_sections_prove_a_rewrite():
    proved = TrialEvidence(equal=22)
    own = TrialEvidence(repeated=22)
    assert proved.score >= HOLDS_FROM > TrialEvidence(equal=21).score
    assert judge_trial(own, NOTHING) is TrialResult.OPEN
    assert judge_trial(own, TrialEvidence(equal=21, repeated=99)) is TrialResult.OPEN
    assert judge_trial(own, proved) is TrialResult.HOLDS
    assert judge_trial(TrialEvidence(repeated=21), proved) is TrialResult.OPEN
    assert judge_trial(own, TrialEvidence(equal=200, differing=1)) is TrialResult.OPEN
    assert judge_trial(own + TrialEvidence(differing=1), proved) is not TrialResult.HOLDS


def test_examples():
    assert doctest.testmod(trial).failed == 0


def trials_of(targets):
    trials = HostTrials(HostRules(sections=sections_of(targets)))
    return trials, trials.propose(targets, 1)


def run(trials, text_of):
    """Compare pairs until nothing is left; return how many were."""
    count = 0
    while asked := trials.choose(lambda target: True):
        trials.add(
            ComparedPair(
                rule,
                pair.canonical,
                pair.value,
                text_of(pair.target).encode()
                if text_of(pair.target) == text_of(pair.canonical)
                else None,
            )
            for rule, pair in asked
        )
        count += len(asked)
        trials.decide()
    return count


SESSION = [f"/a/{n}?sid=s{n}{k}" for n in range(60) for k in range(3)] + [
    f"/a/{n}" for n in range(60)
]


def test_a_session_id_is_learnt():
    trials, proposed = trials_of(SESSION)
    rule = DustRule(Rewrite(RewriteForm.DROP, "sid"), "a")
    assert rule in proposed
    compared = run(trials, lambda target: target.partition("?")[0])
    assert trials.rules.rules == {rule}
    assert compared < 40


def test_a_parameter_that_decides_is_refused_by_one_pair():
    trials, proposed = trials_of(SESSION)
    assert run(trials, lambda target: target) == 6
    assert not trials.rules
    assert trials.refused == set(proposed)


def test_one_text_for_all_urls_proves_nothing():
    trials, _ = trials_of(SESSION)
    run(trials, lambda target: "please log in")
    assert not trials.rules


def test_a_session_id_is_learnt_in_the_section_of_the_login_too():
    targets = [*SESSION, *(target.replace("/a/", "/members/") for target in SESSION)]
    trials, _ = trials_of(targets)
    run(trials, lambda target: "log in" if "members" in target else target.partition("?")[0])
    dropped = Rewrite(RewriteForm.DROP, "sid")
    assert trials.rules.rules == {DustRule(dropped, "a"), DustRule(dropped, "members")}


def test_a_value_is_tried_first_where_another_value_of_its_parameter_differs():
    urls = [f"/a/{n}?variant={k}" for n in range(200) for k in (1, 2)]
    trials, _ = trials_of([*urls, *(f"/a/{n}" for n in range(200))])
    other = DustRule(Rewrite(RewriteForm.VALUE, "variant", "2"), "a")
    rule = DustRule(Rewrite(RewriteForm.VALUE, "variant", "1"), "a")
    trials.add([ComparedPair(other, f"/a/{n}", "", None) for n in (17, 170)])
    first = [one.pair.canonical for one in trials.choose(lambda target: True) if one.rule == rule]
    assert set(first[:2]) == {"/a/17", "/a/170"}
    visited = {target for n in (17, 170) for target in (f"/a/{n}", f"/a/{n}?variant=2")}
    paid = [one.pair for one in trials.choose(visited.__contains__) if one.rule == rule]
    assert paid[0].canonical in ("/a/17", "/a/170")


def test_few_values_are_tried_one_by_one():
    targets = [f"/a/{n}?page={k}" for n in range(40) for k in range(1, 4)]
    targets += [f"/a/{n}" for n in range(40)]
    trials, _ = trials_of(targets)
    run(trials, lambda target: target.removesuffix("?page=1"))
    assert trials.rules.rules == {DustRule(Rewrite(RewriteForm.VALUE, "page", "1"), "a")}


def test_a_parameter_that_decides_in_one_section_is_kept_there():
    targets = [f"/{part}/{n}?v={n}{k}" for part in "ab" for n in range(60) for k in range(2)]
    targets += [f"/{part}/{n}" for part in "ab" for n in range(60)]
    trials, _ = trials_of(targets)
    run(trials, lambda target: target if target.startswith("/b") else target.partition("?")[0])
    assert trials.rules.rules == {DustRule(Rewrite(RewriteForm.DROP, "v"), "a")}


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_what_differs_sometimes_is_refused(share):
    trials, _ = trials_of(SESSION)

    def text_of(target):
        path, _, query = target.partition("?")
        number = int(path.rpartition("/")[2])
        return target if query and number % 10 < share * 10 else path

    run(trials, text_of)
    assert not trials.rules


def test_two_segments_are_tried_in_one_order_and_one_case_only():
    numbers = range(60)
    targets = [f"/{name}/{n}" for name in ("print", "article", "Article") for n in numbers]
    _, proposed = trials_of(targets)
    replaced = [one for one in proposed if one.rewrite.form is RewriteForm.REPLACE]
    pairs = [{one.rewrite.name, one.rewrite.value} for one in replaced]
    assert pairs.count({"print", "article"}) + pairs.count({"print", "Article"}) == 1


def test_a_trial_of_a_case_that_is_gone_blocks_no_other():
    """The case of `/Article/` was in use when the trial began; since then `lower` holds."""
    numbers = range(60)
    targets = [f"/{name}/{n}" for name in ("print", "article", "Article") for n in numbers]
    sections = sections_of(targets)
    lower = DustRule(Rewrite(RewriteForm.LOWER), "article")
    of_the_past = DustRule(Rewrite(RewriteForm.REPLACE, "print", "Article"), "Article")
    trials = HostTrials(HostRules([lower], sections), {of_the_past})
    proposed = trials.propose(targets, 1)
    segments = [one.rewrite[1:] for one in proposed if one.rewrite.form is RewriteForm.REPLACE]
    assert segments in ([("print", "article")], [("article", "print")])


def test_two_segments_that_differ_are_not_tried_the_other_way_round():
    targets = [f"/{name}/{n}" for name in ("brief", "article") for n in range(60)]
    trials, proposed = trials_of([*targets, "/article/60"])
    assert [one.rewrite[:2] for one in proposed] == [(RewriteForm.REPLACE, "brief")]
    run(trials, lambda target: target)
    # The other segment is the more frequent one now.
    assert trials.propose([*targets, "/brief/61"], 1) == []


def test_visits_go_to_the_trial_that_promises_most():
    few = [f"/a/{n}?few=1" for n in range(8)] + [f"/a/{n}" for n in range(8)]
    trials, _ = trials_of(SESSION + few)
    is_new = SESSION[0:180].__contains__
    first = trials.choose(lambda target: not is_new(target))
    assert first[0].rule.rewrite.name == "sid"
    # Another one that needs one pair more is worth more now.
    [other] = [rule for rule in trials.open if rule.rewrite.name == "few"]
    trials.add(ComparedPair(other, f"/b/{n}", "", str(n).encode()) for n in range(21))
    assert trials.choose(lambda target: target.startswith("/b"))[0].rule == other


def test_what_was_asked_for_is_awaited_before_more_is_asked():
    trials, _ = trials_of(SESSION)
    visited = {f"/a/{n}" for n in range(60)}.__contains__
    first = trials.choose(visited)
    assert len(first) == 1
    [(rule, pair)] = first
    trials.add([ComparedPair(rule, pair.canonical, pair.value, b"", waits=True)])
    assert trials.choose(visited) == []
    trials.compared = [ComparedPair(rule, pair.canonical, pair.value, b"text")]
    assert len(trials.choose(visited)) == 1


def test_what_stands_and_was_not_searched_takes_no_visit_of_its_own():
    searched = SESSION[:180]
    trials = HostTrials(HostRules(sections=sections_of(searched)))
    trials.propose(searched, 1, set(SESSION).__contains__)
    visited = set(searched).__contains__
    assert [extra_fetches(one.pair, visited) for one in trials.choose(visited)] == [0] * 6
    trials.propose(searched, 1)
    assert [extra_fetches(one.pair, visited) for one in trials.choose(visited)] == [1]
