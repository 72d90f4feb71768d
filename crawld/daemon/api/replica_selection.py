"""Which replicas and pairs a decision of the operator is about.

`confirm` decides the pairs of each replica and its canonical host; with a group, all pairs inside
it, since a contradiction of two replicas holds the whole group. `reject` makes each host a site of
its own: it decides the pairs with every host of its group. `forget` is about earlier answers.
"""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException

from crawld.core.display import plural
from crawld.core.replica.owners import without_port
from crawld.daemon.api.schemas.replicas import ReplicaForm
from crawld.daemon.daemon import Daemon
from crawld.errors import OperatorError
from crawld.store.frontier import server
from crawld.store.replica import pair as replica_pair
from crawld.store.replica import replica
from crawld.store.replica.pair import Pair, Word, ordered_pair
from crawld.store.replica.replica import ReplicaRow

NAMES_SHOWN: Final = 5
"""Hosts named in an error."""


class Copy(NamedTuple):
    """A host that a decision is about, and the host that it copies or may copy."""

    server_id: int
    host: str
    canonical_id: int
    canonical_host: str
    row: ReplicaRow | None


class Selection(NamedTuple):
    """What a decision is about."""

    copies: list[Copy]
    pairs: set[Pair]
    note: str = ""


async def known_server_id(daemon: Daemon, name: str) -> int:
    """Return the number of a server: a host, or another port of it.

    Raises:
        HTTPException: it is unknown.
    """
    row = await daemon.database.read(server.by_name, name)
    if row is None:
        raise HTTPException(404, f"{name} is no host of the crawl; see: crawlctl hosts")
    return row.server_id


async def select(daemon: Daemon, form: ReplicaForm, word: Word | None) -> Selection:
    """Return what a form names.

    Raises:
        OperatorError: it names nothing, or it is not clear what.
    """
    if sum(each is not None for each in (form.host, form.group, form.match)) != 1:
        raise OperatorError(
            "it is not clear which replicas are meant",
            hint="name one HOST, or --group CANONICAL, or --match PATTERN",
        )
    if form.other is not None and form.host is None:
        raise OperatorError("OTHER needs a HOST", hint="crawlctl replicas confirm HOST OTHER")
    rows = await daemon.database.read(replica.list_replicas)
    if word is None:
        return await _answers(daemon, await _named(daemon, form), rows)
    if form.host is not None and form.other is not None:
        return await _pair(daemon, rows, form.host, form.other)
    if form.host is not None:
        return await _one(daemon, rows, form.host, word)
    if form.group is not None:
        chosen = await _members(daemon, rows, form.group)
    else:
        chosen = [row for row in rows if _matches(row.host, form.match or "")]
        if not chosen:
            raise OperatorError(
                f"no replica's name matches {form.match}",
                hint="the pattern is compared with whole names of the replicas, as *.example.org; "
                "see: crawlctl replicas --all",
            )
    return await _many(daemon, rows, chosen, word, whole_group=form.group is not None)


async def _named(daemon: Daemon, form: ReplicaForm) -> ReplicaForm:
    """Return a form with the servers' own names: that of a host may mean one at a port."""
    known = {}
    for field in ("host", "other", "group"):
        name = getattr(form, field)
        found = name and await daemon.database.read(server.by_name, name)
        known[field] = found.name if found else name
    return form.model_copy(update=known)


def _matches(name: str, pattern: str) -> bool:
    """Whether a pattern is of a server's name, or of that of its host."""
    return any(fnmatchcase(each, pattern) for each in (name, without_port(name)))


async def _answers(daemon: Daemon, form: ReplicaForm, rows: list[ReplicaRow]) -> Selection:
    """Select answers of the operator, also about hosts that are no replicas since then."""
    host = form.host or form.group
    inside = {host, *(row.host for row in rows if row.canonical_host == form.group)}
    answers = [
        answer
        for answer in await daemon.database.read(replica_pair.list_answers)
        if (
            any(_matches(name, form.match) for name in answer.names)
            if form.match is not None
            else host in answer.names or inside.issuperset(answer.names)
        )
        and (form.other is None or form.other in answer.names)
    ]
    if not answers:
        raise OperatorError(
            f"nothing was confirmed or rejected about {form.match or host}",
            hint="see what was: crawlctl replicas",
        )
    return Selection([], {(answer.one_id, answer.other_id) for answer in answers})


async def _pair(daemon: Daemon, rows: list[ReplicaRow], host: str, other: str) -> Selection:
    """Select two hosts, judged or not."""
    one_id, other_id = await known_server_id(daemon, host), await known_server_id(daemon, other)
    if one_id == other_id:
        raise OperatorError(f"{host} and {other} are the same name", hint="name two hosts")
    of_pair = {one_id, other_id}
    row = next((row for row in rows if {row.server_id, row.canonical_id} == of_pair), None)
    copy = copy_of(row) if row is not None else Copy(one_id, host, other_id, other, None)
    return Selection([copy], {ordered_pair(one_id, other_id)})


async def _one(daemon: Daemon, rows: list[ReplicaRow], host: str, word: Word) -> Selection:
    """Select a replica by its name; a host of a single judged pair will do."""
    server_id = await known_server_id(daemon, host)
    row = next((row for row in rows if row.server_id == server_id), None)
    if row is not None:
        return await _many(daemon, rows, [row], word, whole_group=False)
    copies = [row for row in rows if row.canonical_id == server_id]
    if len(copies) == 1:
        return await _many(daemon, rows, copies, word, whole_group=False)
    if copies:
        names = _some([row.host for row in copies])
        raise OperatorError(
            f"{host} is the host that is kept, of {plural(len(copies), 'replica')}",
            hint=f"name a replica ({names}), or all of them: --group {host}",
        )
    pairs = await daemon.database.read(replica_pair.list_pairs, server_id)
    others = [name for pair in pairs for name in pair.evidence.names if name != host]
    if len(pairs) != 1:
        problem = "is in several pairs" if pairs else "was compared with no other host"
        hint = f"name the other host too: {_some(others)}" if pairs else "name both: HOST OTHER"
        raise OperatorError(f"{host} {problem}", hint=hint)
    [pair] = pairs
    other_id = pair.other_id if pair.one_id == server_id else pair.one_id
    copy = Copy(server_id, host, other_id, others[0], None)
    return Selection([copy], {(pair.one_id, pair.other_id)})


async def _members(daemon: Daemon, rows: list[ReplicaRow], canonical: str) -> list[ReplicaRow]:
    """Return the replicas of a canonical host."""
    canonical_id = await known_server_id(daemon, canonical)
    chosen = [row for row in rows if row.canonical_id == canonical_id]
    if chosen:
        return chosen
    kept = next((row.canonical_host for row in rows if row.server_id == canonical_id), None)
    raise OperatorError(
        f"no host is a replica of {canonical}",
        hint=f"it is a replica itself; use --group {kept}" if kept else "see: crawlctl replicas",
    )


async def _many(
    daemon: Daemon,
    rows: list[ReplicaRow],
    chosen: list[ReplicaRow],
    word: Word,
    *,
    whole_group: bool,
) -> Selection:
    """Select replicas and the pairs that a decision on them needs."""
    note = ""
    if word == "confirmed" and len(chosen) > 1:
        # What was taken back because it differs is confirmed only by its name.
        kept = [row for row in chosen if row.status != "withdrawn"]
        if not kept:
            raise OperatorError(
                "all of them were withdrawn, since their pages differ",
                hint="to confirm one nevertheless, name it: crawlctl replicas confirm HOST",
            )
        if left := len(chosen) - len(kept):
            note = f"; {plural(left, 'withdrawn replica')} left out: name each"
        chosen = kept
    own = {row.server_id for row in chosen}
    pairs = {ordered_pair(row.server_id, row.canonical_id) for row in chosen}
    if word == "rejected" or whole_group:
        groups: dict[int, set[int]] = {}
        for row in rows:
            groups.setdefault(row.canonical_id, {row.canonical_id}).add(row.server_id)
        for canonical_id in {row.canonical_id for row in chosen}:
            inside = await daemon.database.read(replica_pair.pairs_among, groups[canonical_id])
            pairs |= {pair for pair in inside if own.intersection(pair)}
    return Selection([copy_of(row) for row in chosen], pairs, note)


def copy_of(row: ReplicaRow) -> Copy:
    """Return a replica as what a decision is about."""
    return Copy(row.server_id, row.host, row.canonical_id, row.canonical_host, row)


def _some(names: Collection[str]) -> str:
    shown = sorted(names)[:NAMES_SHOWN]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
