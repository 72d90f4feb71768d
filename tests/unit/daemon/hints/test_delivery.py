"""Which hints come after reports of edits, and which end the rest of a page."""

import json
from types import SimpleNamespace

import pytest

from crawld.core.change.reliability import Reliability
from crawld.daemon.frontier.page_queue import RELIABLE_TRUST
from crawld.daemon.hints.delivery import is_indirect, trust_of


def row(kind, *, real):
    """Return a source with a hundred judged hints, of which so many were real."""
    evidence = Reliability()
    for number in range(100):
        evidence.learn_visit(1, changed=number < real)
    return SimpleNamespace(kind=kind, evidence=json.dumps(evidence.as_dict()))


@pytest.mark.parametrize(
    ("kind", "real", "indirect"),
    [
        ("recent_changes", 99, False),
        ("feed", 99, False),
        ("sitemap", 10, True),
        ("fan_out", 99, True),
        ("gap", 99, True),
    ],
)
def test_guesses_and_doubtful_reports_come_after_edits(kind, real, indirect):
    source = row(kind, real=real)
    assert is_indirect(source.kind, trust_of(source)) == indirect


def test_users_of_templates_are_visited_although_most_edits_of_templates_show_nothing():
    assert trust_of(row("fan_out", real=2)) == RELIABLE_TRUST
    assert trust_of(row("sitemap", real=2)) < RELIABLE_TRUST
