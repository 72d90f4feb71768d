"""Replicas, questions about them and answers as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.text import Text

from crawld.cli import tables
from crawld.cli.output import clean
from crawld.core.display import ago_text, count_text, duration_text, every_text, plural

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.replicas import (
        PairStatus,
        ReplicaDecision,
        ReplicaProspect,
        Replicas,
        ReplicaStatus,
    )

ROWS_SHOWN: Final = 20
"""Rows of each part of the list, without --all."""

NAMES_SHOWN: Final = 3
"""Replicas of a group that are named."""

NOTHING: Final = "no replicas found so far; see: crawlctl jobs"


def replicas_table(found: Replicas, now: float, *, whole: bool = False) -> RenderableType:
    """Return replicas as text: questions, those that wait, groups; `whole`: each with its pairs."""
    if not found.replicas and not found.pairs:
        hidden = found.pairs_left_out
        more = f"; {plural(hidden, 'judged pair')}: crawlctl replicas --all" if hidden else ""
        return NOTHING + more
    if whole:
        parts: list[RenderableType] = [_table(found.replicas, now)] if found.replicas else []
        return Group(*parts, *(_pair_text(pair) for pair in found.pairs))
    return Group(*_sections(found, now))


def _sections(found: Replicas, now: float) -> Iterator[RenderableType]:
    asked = [row for row in found.replicas if row.waits_for == "operator"]
    waiting = [row for row in found.replicas if row.waits_for == "turn"]
    off = [row for row in found.replicas if row.waits_for == "config"]
    resting = [row for row in found.replicas if row.status == "pruned"]
    sharing = [row for row in found.replicas if row.status == "partly"]
    withdrawn = [row for row in found.replicas if row.status == "withdrawn"]
    if asked:
        yield from _questions(asked, found.pairs)
    if waiting:
        yield from _waiting(waiting, found)
    if off:
        yield _heading("Found, but pruning is off ([replicas] prune)", off)
        yield from _groups(off)
    if resting:
        yield _heading("Replicas", resting, f", {_rest(resting)}")
        yield from _groups(resting)
    if sharing:
        yield _heading(
            "Share pages with another host", sharing, f", {_rest(sharing)}; they are no replicas"
        )
        yield from _groups(sharing)
    if withdrawn:
        yield _heading("Withdrawn, visited again", withdrawn)
        rows = [
            (
                clean(row.host),
                clean(row.canonical_host),
                ago_text(row.since, now),
                clean(row.reason),
            )
            for row in withdrawn[:ROWS_SHOWN]
        ]
        yield tables.table(("host", "was a replica of", "since", "reason"), rows)
        yield from _more(len(withdrawn))
    yield from _decided(found)


def _heading(text: str, rows: Sequence[object], more: str = "") -> Text:
    return Text(f"\n{text}: {plural(len(rows), 'host')}{more}", "bold")


def _rest(rows: Sequence[ReplicaStatus]) -> str:
    return f"{plural(sum(row.suspended for row in rows), 'page')} rest"


def _more(count: int) -> Iterator[str]:
    if count > ROWS_SHOWN:
        yield f"and {count_text(count - ROWS_SHOWN)} more: crawlctl replicas --all"


def _questions(
    rows: Sequence[ReplicaStatus], pairs: Sequence[PairStatus]
) -> Iterator[RenderableType]:
    """Yield the questions, those about most pages first, and how to answer them."""
    evidence = {frozenset(pair.hosts): pair for pair in pairs}
    yield _heading("Asks for your answer", rows)
    shown = []
    for row in rows[:ROWS_SHOWN]:
        pair = evidence.get(frozenset((row.host, row.canonical_host)))
        odds = pair.probability if pair is not None else None
        shown.append(
            (
                clean(row.host),
                clean(row.canonical_host),
                count_text(row.pages),
                "-" if pair is None else _same_text(pair),
                "-" if odds is None else f"{odds:.2f}",
                clean(row.reason),
            )
        )
    yield tables.table(
        ("host", "same site as?", "pages", "same text", "probability", "why it asks"), shown
    )
    yield from _more(len(rows))
    first = rows[0]
    yield f"look:   crawlctl replicas confirm {clean(first.host)} --dry-run"
    yield "answer: crawlctl replicas confirm|reject HOST, or --group CANONICAL, or --match PATTERN"


def _same_text(pair: PairStatus) -> str:
    similar = f", {pair.similar} similar" if pair.similar else ""
    return f"{pair.equal} of {pair.compared}{similar}"


def _waiting(rows: Sequence[ReplicaStatus], found: Replicas) -> Iterator[RenderableType]:
    yield _heading("Wait for their turn", rows)
    least_s = ceil(len(rows) / max(found.turn_hosts, 1)) * found.every_s
    yield (
        f"one search prunes at most {count_text(found.turn_hosts)} hosts (storm_share), and runs "
        f"{every_text(found.every_s)}: all in {duration_text(least_s)} or more"
    )
    yield from _groups(rows)
    yield "look:    crawlctl replicas confirm --all --dry-run"
    yield "at once: crawlctl replicas confirm --all"
    yield "never:   crawlctl replicas reject HOST, or --group CANONICAL, or --match PATTERN"


def _groups(rows: Sequence[ReplicaStatus]) -> Iterator[RenderableType]:
    """Yield a table with a row per canonical host, those with most pages first."""
    by_host = sorted(rows, key=lambda row: (row.canonical_host, row.host))
    groups = [
        (canonical, list(members))
        for canonical, members in groupby(by_host, lambda row: row.canonical_host)
    ]
    groups.sort(key=lambda group: -sum(row.pages for row in group[1]))
    yield tables.table(
        ("canonical", "hosts", "rest", "differ", "of pages", "names"),
        (
            (
                clean(canonical),
                count_text(len(members)),
                count_text(sum(row.suspended for row in members)),
                count_text(sum(row.differing for row in members)),
                count_text(sum(row.pages for row in members)),
                _names([row.host for row in members]),
            )
            for canonical, members in groups[:ROWS_SHOWN]
        ),
    )
    yield from _more(len(groups))


def _names(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    shown = ", ".join(clean(name) for name in names[:NAMES_SHOWN])
    return f"{shown} and {count_text(more)} more" if more > 0 else shown


def _decided(found: Replicas) -> Iterator[RenderableType]:
    """Yield what the operator has answered, and how many pairs are not shown."""
    for word in ("confirmed", "rejected"):
        pairs = [pair for pair in found.pairs if pair.word == word]
        if pairs:
            names = _names([" = ".join(pair.hosts) for pair in pairs])
            yield f"\nyou {word} {plural(len(pairs), 'pair')}: {names}"
    if found.pairs_left_out:
        pairs_left = plural(found.pairs_left_out, "more judged pair")
        yield f"\n{pairs_left}: crawlctl replicas --all, or crawlctl replicas list HOST"


def _table(rows: Sequence[ReplicaStatus], now: float) -> RenderableType:
    headings = (
        "host", "canonical", "verdict", "since", "rest", "differ", "of pages", "samples", "lag",
        "lease", "reason",
    )  # fmt: skip
    return tables.table(
        headings,
        (
            (
                clean(row.host),
                clean(row.canonical_host),
                row.status,
                ago_text(row.since, now),
                count_text(row.suspended),
                count_text(row.differing),
                count_text(row.pages),
                f"{row.agreed} of {row.sampled}" if row.sampled else "-",
                "-" if row.lag_s is None else duration_text(row.lag_s),
                "yes" if row.stands_in else "-",
                clean(row.reason),
            )
            for row in rows
        ),
    )


def _pair_text(pair: PairStatus) -> Text:
    verdict = f", {pair.word} by the operator" if pair.word else ""
    odds = "" if pair.probability is None else f", probability {pair.probability:.2f}"
    text = Text(f"\n{clean(pair.hosts[0])} = {clean(pair.hosts[1])}: {pair.level}{odds}{verdict}\n")
    text.append("  " + "; ".join(clean(reason) for reason in pair.reasons))
    return text


def decision_text(found: ReplicaDecision) -> RenderableType:
    """Return the result of an answer; of a dry run the pages of each host."""
    if not found.dry_run:
        return clean(found.done)
    parts: list[RenderableType] = [clean(found.done)]
    if found.hosts:
        parts += ["", _prospects(found.hosts)]
    parts += [part for each in found.hosts[:ROWS_SHOWN] for part in _examples(each)]
    if len(found.hosts) > ROWS_SHOWN:
        parts.append(f"\npages of the first {ROWS_SHOWN} hosts are shown; all: --json")
    if found.unexamined:
        hosts = plural(found.unexamined, "more host")
        parts.append(f"\n{hosts} not examined, as a dry run has a limit: name fewer")
    parts.append("\nto do it, repeat the command without --dry-run")
    return Group(*parts)


def _prospects(hosts: Sequence[ReplicaProspect]) -> RenderableType:
    rows = [
        (
            clean(each.host),
            clean(each.canonical_host),
            *(count_text(getattr(each, name)) for name in _COUNTS),
        )
        for each in hosts
    ]
    if len(hosts) > 1:
        sums = (sum(getattr(each, name) for each in hosts) for name in _COUNTS)
        rows.append((f"{len(hosts)} hosts", "", *(count_text(count) for count in sums)))
    headings = (
        "host", "canonical", "rest now", "same text", "differ", "one text", "only there",
        "unvisited",
    )  # fmt: skip
    return tables.table(headings, rows)


_COUNTS: Final = (
    "resting", "would_rest", "differing", "repeated", "only_here", "unvisited"
)  # fmt: skip


def _examples(each: ReplicaProspect) -> Iterator[Text]:
    for words, urls in (("same", each.resting_examples), ("differs", each.differing_examples)):
        for url in urls:
            yield Text(f"  {words:<8} {clean(url)}", no_wrap=True, overflow="ellipsis")
