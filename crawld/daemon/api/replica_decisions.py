"""Stores the decisions of the operator about replicas, or tells what they would do to pages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from crawld.core.display import count_text, plural
from crawld.daemon.api.replica_prospects import ReplicaProspects
from crawld.daemon.api.replica_selection import Selection, copy_of, select
from crawld.daemon.api.schemas.replicas import ReplicaDecision, ReplicaForm, ReplicaProspect
from crawld.daemon.daemon import Daemon
from crawld.store.replica import pair as replica_pair
from crawld.store.replica import replica
from crawld.store.replica.pair import Pair, Word

JOB: Final = "replicas"

WRITE_PAIRS: Final = 500
"""Decisions stored in one transaction."""


async def decide(daemon: Daemon, form: ReplicaForm, word: Word | None) -> ReplicaDecision:
    """Store a decision on what a form names, or tell what it would do.

    Args:
        daemon: the daemon.
        form: what is decided.
        word: the decision; None: the searches decide again.

    Raises:
        OperatorError: the form names nothing, or it is not clear what.
    """
    selection = await select(daemon, form, word)
    names = await _names(daemon, selection.pairs)
    if form.dry_run:
        prospects, unexamined = await ReplicaProspects(daemon).of(selection.copies)
        text = (
            f"dry run, nothing is changed: {_decided_text(selection, word)}{selection.note}; "
            f"{_meaning(prospects, word)}"
        )
        return ReplicaDecision(
            done=text, dry_run=True, pairs=names, hosts=prospects, unexamined=unexamined
        )
    changed, pairs = 0, sorted(selection.pairs)
    now = daemon.clock.now()
    for begin in range(0, len(pairs), WRITE_PAIRS):
        part = pairs[begin : begin + WRITE_PAIRS]
        changed += await daemon.database.write(replica_pair.put_words, part, word, now)
    if changed:
        daemon.background.jobs.run_soon(JOB)
    tells = f"the job {JOB} runs" if changed else "that was decided before, so nothing changes"
    return ReplicaDecision(
        done=f"{_decided_text(selection, word)}; {tells}{selection.note}",
        dry_run=False,
        pairs=names,
        hosts=[],
        unexamined=0,
    )


async def decide_all(daemon: Daemon, *, dry_run: bool) -> ReplicaDecision:
    """Permit the next search to prune every replica that waits for its turn."""
    rows = await daemon.database.read(replica.list_replicas)
    copies = [copy_of(row) for row in rows if row.waits_for == "turn"]
    what = f"the next search prunes all that wait for their turn, {plural(len(copies), 'host')} now"
    prospects: list[ReplicaProspect] = []
    unexamined = 0
    if dry_run:
        prospects, unexamined = await ReplicaProspects(daemon).of(copies)
        what = f"dry run, nothing is changed: {what}; {_meaning(prospects, 'confirmed')}"
    else:
        await daemon.database.write(partial(replica.allow_all, allowed=True))
        daemon.background.jobs.run_soon(JOB)
        what = f"{what}; the job {JOB} runs"
    return ReplicaDecision(
        done=what, dry_run=dry_run, pairs=[], hosts=prospects, unexamined=unexamined
    )


def _decided_text(selection: Selection, word: Word | None) -> str:
    copies = selection.copies
    if word is None:
        return f"the searches decide about {plural(len(selection.pairs), 'pair')} again"
    if len(copies) == 1:
        names = f"{copies[0].host} and {copies[0].canonical_host}"
        return f"{names} are {'one site' if word == 'confirmed' else 'two sites'}"
    kept = {copy.canonical_host for copy in copies}
    of = next(iter(kept)) if len(kept) == 1 else plural(len(kept), "host")
    many = plural(len(copies), "host")
    if word == "confirmed":
        return f"{many} are replicas of {of}"
    return f"{many} are sites of their own, not replicas of {of}"


def _meaning(prospects: list[ReplicaProspect], word: Word | None) -> str:
    """Return what becomes of the pages of some hosts, in words."""
    resting = sum(each.resting for each in prospects)
    if word != "confirmed":
        return f"{plural(resting, 'page')} that rest now would be visited again"
    same = sum(each.would_rest for each in prospects)
    others = sum(
        each.differing + each.repeated + each.only_here + each.unvisited for each in prospects
    )
    return (
        f"{plural(same, 'page')} would rest ({count_text(resting)} do now), "
        f"{count_text(others)} would still be visited"
    )


async def _names(daemon: Daemon, pairs: Iterable[Pair]) -> list[tuple[str, str]]:
    return await daemon.database.read(replica_pair.names, sorted(pairs))
