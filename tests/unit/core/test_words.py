"""Every value of the program that people see has a word of their own."""

import re
from pathlib import Path

import pytest

from crawld.core import words
from crawld.core.page import Failure, Outcome, PageState
from crawld.core.robots import RobotsVerdict
from crawld.sources.mediawiki_api import TroubleKind
from crawld.store.frontier import caps

ROOT = Path(__file__).parents[3] / "crawld"


def returned(path):
    """Return the words that functions of a module return as reasons."""
    return set(re.findall(r'return "([a-z_]+)"', (ROOT / path).read_text()))


@pytest.mark.parametrize(
    ("table", "values"),
    [
        (words.OUTCOME_WORDS, Outcome),
        (words.STATE_WORDS, PageState),
        (words.FAILURE_WORDS, Failure),
        (words.ROBOTS_WORDS, RobotsVerdict),
        (words.TROUBLE_WORDS, TroubleKind),
        (words.TROUBLE_WORDS, Failure),
        (words.REFUSAL_WORDS, returned("core/scope.py") | returned("core/traps.py")),
        (words.REFUSAL_WORDS, {caps.SITE_CAP, caps.HOST_CAP, caps.REQUISITE_CAP}),
    ],
)
def test_every_value_has_a_label(table, values):
    assert set(values) - set(table) == set()


def test_pauses_have_labels():
    named = set()
    for path in ROOT.rglob("daemon/**/*.py"):
        named |= set(re.findall(r'schedule\.pause\("(\w+)"\)', path.read_text()))
    assert named
    assert named <= set(words.PAUSE_WORDS)


def test_no_label_is_a_name_of_the_program():
    tables = [each for name, each in vars(words).items() if name.endswith("_WORDS")]
    keys = {"max_pages", "max_pages_per_host", "max_requisites", "max_links_per_page"}
    keys |= {"max_depth", "requisite_hosts"}  # keys of the config
    shown = {word for table in tables for label in table.values() for word in label.split()}
    assert {word for word in shown if "_" in word} <= keys


def test_counts_tell_new_pages_apart():
    counts = {Outcome.CHANGED: 3, Outcome.SOFT_GONE: 1, Outcome.NOT_MODIFIED: 1200}
    assert words.outcome_counts(counts, 3) == "3 new, 1,200 not modified, 1 soft 404"
    assert words.outcome_counts({}, 0) == "none"
    # A count that is read between two additions is never negative.
    assert words.outcome_counts({Outcome.CHANGED: 1}, 2) == "2 new"
    assert words.state_counts({PageState.GONE: 2}) == "2 gone"


def test_a_value_without_a_label_is_readable():
    assert words.label(words.FAILURE_WORDS, "some_new_one") == "some new one"
    assert words.label(words.FAILURE_WORDS, None) == ""
    assert words.trouble_label("status_503") == "status 503"
    assert words.labels(words.PAUSE_WORDS, ["operator", "drain"]) == (
        "after crawlctl drain, by crawlctl pause"
    )
