"""The bandit over request profiles: finds what works, spends little, notices a change of mind."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.request_profiles import (
    RETEST_VISITS,
    SEARCHES,
    TRIAL_SHARE,
    AnswerForm,
    HostBudget,
    Prior,
    RequestProfile,
    SectionChoice,
    WantedForm,
    trial_profile,
    usual_profile,
    wants_retest,
)

PROFILES = [
    RequestProfile("plain"),
    RequestProfile("german", (("Accept-Language", "de"),)),
    RequestProfile("json", (("Accept", "application/json"),)),
    RequestProfile("phone", agent_suffix="Mobile"),
]
NOTHING = Prior((0,) * 4, (0,) * 4)


def visit(choice, budget, works, rng, prior=NOTHING, vary=None):
    """Visit a page of a section on which one profile works; return the trials it took, or None."""
    budget.earn()
    tried = [usual_profile(choice, prior)]
    while True:
        wanted = tried[-1] == works
        choice.answers[tried[-1]].add(wanted=wanted)
        choice.in_use = tried[-1] if wanted else None
        if wanted:
            budget.find()
            return len(tried) - 1
        number = trial_profile(choice, prior, PROFILES, tried, vary, rng)
        if number is None or not budget.take():
            return None
        tried.append(number)


@pytest.mark.parametrize("works", range(4))
def test_the_first_page_finds_what_works_and_later_ones_use_it(works):
    choice, budget, rng = SectionChoice.new(4), HostBudget.new(4), random.Random(works)
    assert visit(choice, budget, works, rng) is not None
    assert [visit(choice, budget, works, rng) for _ in range(50)] == [0] * 50
    assert budget.trials <= 3


@given(st.integers(0, 2**32), st.lists(st.integers(0, 4), min_size=1, max_size=400))
def test_trials_stay_within_their_share_whatever_a_host_does(seed, works):
    choice, budget, rng = SectionChoice.new(4), HostBudget.new(4), random.Random(seed)
    for each in works:
        visit(choice, budget, each, rng)
    assert budget.trials <= 3 * SEARCHES + TRIAL_SHARE * len(works)


def test_a_change_of_mind_is_found_at_the_next_visit():
    # Also right after the first search, which may have taken all tokens that a host begins with.
    for seed, visits in itertools.product(range(50), (1, 200)):
        choice, budget, rng = SectionChoice.new(4), HostBudget.new(4), random.Random(seed)
        for _ in range(visits):
            visit(choice, budget, 1, rng)
        assert visit(choice, budget, 3, rng) is not None
        assert visit(choice, budget, 3, rng) == 0


def test_fifty_hosts_cost_two_per_cent_of_their_requests_at_most():
    rng = random.Random(7)
    choices = [SectionChoice.new(4) for _ in range(50)]
    budgets = [HostBudget.new(4) for _ in range(50)]
    works = [rng.randrange(4) for _ in range(50)]
    right = 0
    for number in range(100):
        for host in rng.sample(range(50), 50):
            prior = Prior.of(4, [], (each for each in choices if each is not choices[host]))
            found = visit(choices[host], budgets[host], works[host], rng, prior)
            right += number >= 1 and found == 0
    assert right == 50 * 99
    trials = sum(each.trials for each in budgets)
    assert 0 < trials <= TRIAL_SHARE * 50 * 100


def test_other_hosts_say_what_to_try_first():
    found = SectionChoice.new(4)
    found.in_use = 3
    prior = Prior.of(4, [], [found] * 5)
    assert usual_profile(SectionChoice.new(4), prior) == 3
    nearer = SectionChoice.new(4)
    nearer.in_use = 2
    assert usual_profile(SectionChoice.new(4), Prior.of(4, [nearer] * 5, [found] * 500)) == 2
    firsts = [
        trial_profile(SectionChoice.new(4), prior, PROFILES, [0], None, random.Random(seed))
        for seed in range(300)
    ]
    assert 130 <= firsts.count(3) <= 230
    assert set(firsts) == {1, 2, 3}


def test_what_was_unwanted_is_drawn_less_often():
    choice = SectionChoice.new(4)
    for _ in range(10):
        choice.answers[2].add(wanted=False)
    firsts = [
        trial_profile(choice, NOTHING, PROFILES, [0], None, random.Random(seed))
        for seed in range(300)
    ]
    assert firsts.count(2) <= 30


@pytest.mark.parametrize(
    ("vary", "first"),
    [
        ("Accept-Language", 1),
        ("accept, accept-encoding", 2),
        ("User-Agent", 3),
    ],
)
def test_profiles_that_vary_says_to_answer_alike_come_last(vary, first):
    for seed in range(20):
        rng = random.Random(seed)
        assert trial_profile(SectionChoice.new(4), NOTHING, PROFILES, [0], vary, rng) == first
        order = [0]
        while number := trial_profile(SectionChoice.new(4), NOTHING, PROFILES, order, vary, rng):
            order.append(number)
        assert sorted(order) == [0, 1, 2, 3]


def test_without_vary_or_with_a_star_any_profile_may_differ():
    for vary in (None, "*"):
        drawn = {
            trial_profile(SectionChoice.new(4), NOTHING, PROFILES, [0], vary, random.Random(seed))
            for seed in range(40)
        }
        assert drawn == {1, 2, 3}


def test_a_retest_waits_for_many_visits_and_a_full_budget():
    choice, budget = SectionChoice.new(4), HostBudget.new(4)
    choice.in_use, choice.visits = 1, RETEST_VISITS
    assert not wants_retest(choice, budget)
    for _ in range(RETEST_VISITS):
        budget.earn()
    assert wants_retest(choice, budget)
    choice.visits = RETEST_VISITS - 1
    assert not wants_retest(choice, budget)


@pytest.mark.parametrize(
    ("wanted", "form", "why"),
    [
        (WantedForm(), AnswerForm("image/png", 0), None),
        (WantedForm(("text/html",)), AnswerForm("text/html", 9), None),
        (WantedForm(("text/html",)), AnswerForm("text/plain", 9), "type text/plain"),
        (WantedForm(language="de"), AnswerForm("text/html", 9, "de"), None),
        (WantedForm(language="de"), AnswerForm("text/html", 9, "en"), "language en"),
        (WantedForm(language="de"), AnswerForm("text/html", 9), None),
        (WantedForm(min_bytes=10), AnswerForm("text/html", 9), "only 9 bytes"),
        (WantedForm(max_bytes=8), AnswerForm("text/html", 9), "9 bytes"),
        (WantedForm(max_bytes=9, min_bytes=9), AnswerForm("text/html", 9), None),
        (WantedForm(text="Preis"), AnswerForm("text/html", 9, text="Der Preis"), None),
        (WantedForm(text="Preis"), AnswerForm("text/html", 9, text="x"), "without the wanted text"),
    ],
)
def test_a_shortcoming_is_told_in_words(wanted, form, why):
    assert wanted.shortcoming(form) == why
