"""`crawlctl replicas`: questions first, groups, dry runs."""

import pytest
import typer

from crawld.cli.replica_tables import NOTHING, decision_text, replicas_table
from crawld.cli.replicas import Action, replicas
from crawld.core.replica.verdict import VerdictLevel
from crawld.daemon.api.schemas.replicas import (
    PairStatus,
    ReplicaDecision,
    ReplicaProspect,
    Replicas,
    ReplicaStatus,
)
from tests.unit.cli.conftest import shown

NOW = 1_000_000.0


def status(host, canonical="a.com", **changed):
    fields = {
        "host": host,
        "canonical_host": canonical,
        "status": "pruned",
        "waits_for": None,
        "reason": "https",
        "since": NOW - 60.0,
        "pages": 12,
        "suspended": 10,
        "twins": 11,
        "agreeing": 10,
        "differing": 1,
        "sampled": 0,
        "agreed": 0,
        "lag_s": None,
        "stands_in": False,
        "look_at": NOW,
    }
    return ReplicaStatus(**(fields | changed))


def pair(one, other, **changed):
    fields = {
        "hosts": (one, other),
        "level": VerdictLevel.LIKELY,
        "probability": 0.75,
        "reasons": ["same text on 9 of 10 shared paths"],
        "pages": (12, 12),
        "common": 10,
        "compared": 10,
        "equal": 9,
        "similar": 1,
        "features": {},
        "word": None,
        "judged_at": NOW,
    }
    return PairStatus(**(fields | changed))


def answer(rows=(), pairs=(), left_out=0):
    return Replicas(
        replicas=list(rows),
        replicas_in_all=len(rows),
        questions=sum(row.waits_for == "operator" for row in rows),
        waiting=sum(row.waits_for == "turn" for row in rows),
        pairs=list(pairs),
        pairs_in_all=len(pairs),
        pairs_left_out=left_out,
        turn_hosts=10,
        every_s=3600,
    )


def held(host, waits_for="operator", **more):
    return status(host, status="held", waits_for=waits_for, suspended=0, **more)


def test_an_empty_list_names_the_next_step():
    assert shown(replicas_table(answer(), NOW)).strip() == NOTHING
    assert "7 judged pairs: crawlctl replicas --all" in shown(
        replicas_table(answer(left_out=7), NOW)
    )


def test_questions_come_first_with_their_evidence_and_how_to_answer():
    rows = [held("b.net", reason="may have different owners"), status("www.a.com")]
    text = shown(replicas_table(answer(rows, [pair("a.com", "b.net")], 3), NOW))
    assert text.index("Asks for your answer: 1 host") < text.index("Replicas: 1 host, 10 pages")
    assert "9 of 10, 1 similar" in text
    assert "0.75" in text
    assert "crawlctl replicas confirm b.net --dry-run" in text
    assert "3 more judged pairs: crawlctl replicas --all" in text
    assert "same text on" not in text
    assert "same text on" in shown(
        replicas_table(answer(rows, [pair("a.com", "b.net")]), NOW, whole=True)
    )


def test_those_that_wait_for_their_turn_are_grouped_and_tell_how_long():
    rows = [held(f"m{at}.a.com", "turn") for at in range(25)]
    text = shown(replicas_table(answer(rows), NOW))
    assert "at most 10 hosts (storm_share), and runs every hour: all in 3 h 00 min or more" in text
    assert "m0.a.com, m1.a.com, m10.a.com and 22 more" in text
    assert "confirm --all --dry-run" in text


def test_long_lists_are_cut_and_name_the_command_for_the_rest():
    rows = [held(f"h{at}.net") for at in range(25)]
    text = shown(replicas_table(answer(rows), NOW))
    assert "and 5 more: crawlctl replicas --all" in text
    assert "h24.net" not in text


def test_withdrawn_replicas_and_answers_are_shown():
    rows = [status("m.a.com", status="withdrawn", reason="3 of 4 differ"), held("x.com", "config")]
    pairs = [pair("a.com", "b.net", word="rejected")]
    text = shown(replicas_table(answer(rows, pairs), NOW))
    assert "3 of 4 differ" in text
    assert "pruning is off" in text
    assert "you rejected 1 pair: a.com = b.net" in text


def test_a_dry_run_shows_counts_and_examples():
    prospects = [
        ReplicaProspect(
            host=f"m{at}.a.com",
            canonical_host="a.com",
            status="held",
            resting=0,
            would_rest=7,
            differing=2,
            repeated=0,
            only_here=1,
            unvisited=0,
            resting_examples=["http://m.a.com/same"],
            differing_examples=["http://m.a.com/other\x1b"],
        )
        for at in range(2)
    ]
    found = ReplicaDecision(done="dry run", dry_run=True, pairs=[], hosts=prospects, unexamined=3)
    text = shown(decision_text(found))
    assert "14" in text
    assert "  same     http://m.a.com/same" in text
    assert "  differs  http://m.a.com/other\N{REPLACEMENT CHARACTER}" in text
    assert "3 more hosts not examined" in text
    assert "without --dry-run" in text
    done = found.model_copy(update={"dry_run": False})
    assert shown(decision_text(done)).strip() == "dry run"


@pytest.mark.parametrize(
    ("action", "given", "problem"),
    [
        (Action.LIST, {"group": "a"}, "--group is not for list"),
        (Action.LIST, {"dry_run": True}, "--dry-run is not for list"),
        (Action.PREFER, {}, "HOST is missing"),
        (Action.PREFER, {"host": "a", "every": True}, "--all is not for prefer"),
        (Action.REJECT, {"every": True}, "--all is only for"),
        (Action.CONFIRM, {"every": True, "host": "a"}, "--all is only for"),
        (Action.CONFIRM, {}, "crawlctl replicas confirm --match PATTERN"),
        (Action.FORGET, {"host": "a", "group": "b"}, "name what it is about"),
    ],
)
def test_misuse_is_told_before_anything_is_asked(action, given, problem):
    with pytest.raises(typer.BadParameter, match=problem):
        replicas(None, action, **given)
