"""Change models, visits and times in words."""

import pytest

from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.page import Failure, Outcome
from crawld.core.traps import DEFAULT_LIMITS
from crawld.core.why import words
from crawld.core.why.facts import VisitFacts
from crawld.core.why.words import change_words, moment, refusal_words, trap_words, visit_words

DAY_S = 86_400.0
BEGIN = 1_700_000_000.0


def model_of(changed, every_s=DAY_S):
    """Return the model of a page visited at intervals; whether each visit saw a change."""
    model = PageModel()
    model.update(Observation(BEGIN, False))
    for number, each in enumerate(changed, 1):
        model.update(Observation(BEGIN + number * every_s, each, interval_s=every_s))
    return model


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (None, "too early to tell"),
        (PageModel(), "too early to tell"),
        (model_of([]), "too early to tell: visited once"),
        (model_of([False] * 52), "never seen to change, in 53 visits over 52 days"),
        (model_of([True]), "too early to tell: 1 change in 2 visits over 24 hours"),
        (
            model_of([True, False, False] * 13),
            "changes about every 4 days, from 40 visits over 39 days",
        ),
        (model_of([True] * 20, 3_600.0), None),
    ],
)
def test_a_change_model_speaks_only_with_evidence(model, text):
    found = change_words(model)
    assert found == text if text is not None else found.startswith("changes about every ")


@pytest.mark.parametrize("failure", Failure)
def test_every_failure_has_words(failure):
    text = visit_words(VisitFacts(BEGIN, Outcome.FAILED, failure.value, None, None))
    assert " " in text
    assert "_" not in text


@pytest.mark.parametrize(
    "outcome", [each for each in Outcome if each not in (Outcome.FAILED, Outcome.BLOCKED)]
)
def test_every_outcome_has_words(outcome):
    text = visit_words(VisitFacts(BEGIN, outcome, None, "http://a.test/new", 200))
    assert "_" not in text
    assert ("http://a.test/new" in text) == (outcome is Outcome.MOVED)


def test_every_trap_has_words_and_an_existing_key():
    names = {"length", "segments", "parameters", "repetition", "calendar"}
    for name in names:
        text, key = trap_words(name)
        assert text != name.replace("_", " ")
        assert not key or hasattr(DEFAULT_LIMITS, key)
    assert set(words._TRAPS) == names


@pytest.mark.parametrize(
    "reason",
    [
        *("site_cap", "host_cap", "requisite_cap", "collision", "max_links_per_page", "robots"),
        *("max_hosts_per_page", "max_hosts_per_domain", "requisite_host", "host"),
        *("exclude", "include", "depth"),
        *("wiki_part", "wiki_talk", "wiki_view", "length", "calendar"),
    ],
)
def test_every_refusal_has_words(reason):
    assert refusal_words(reason) != reason
    assert len(refusal_words(reason).split()) > 2


def test_a_moment_of_another_century_has_a_text():
    assert moment(BEGIN + 60.0, BEGIN) == "in 1 min 00 s (2023-11-14 22:14 UTC)"
    assert moment(BEGIN - 60.0, BEGIN) == "1 min 00 s ago (2023-11-14 22:12 UTC)"
    assert moment(1e15, BEGIN).startswith("in ")
