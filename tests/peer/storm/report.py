"""Figures of a storm against what is asked of a live mirror of a wiki."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

from crawld.simweb.ledger import LedgerRow
from tests.peer.nginx import PRECISION_S
from tests.peer.storm.final import Differences
from tests.peer.storm.need import least_requests
from tests.peer.storm.status_probe import StatusProbe
from tests.peer.storm.storm import StormLog
from tests.peer.storm.watch import Expectation, Watch
from tests.peer.storm.world import RETRY_AFTER_S

CATCH_UP_S = 60.0
DELETION_GRACE_S = 15.0
OUTAGE_GRACE_S = 30.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report; `ok` None: nothing was asked, or nothing happened."""

    name: str
    asked: str
    seen: str
    ok: bool | None


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a change was not visible; `is_over` False: it still was not at the end."""

    at: float
    wait_s: float
    is_over: bool
    what: str


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(max(-int(-share * len(ordered) // 1) - 1, 0), len(ordered) - 1)]


def make_report(
    watch: Watch,
    log: StormLog,
    differences: Differences,
    requests: Sequence[LedgerRow],
    delay_s: float,
    unexpected_ends: int,
) -> list[Line]:
    """Return all lines."""
    over_at = _over_at(log, requests)
    waits = _waits(watch)
    outside = {
        row: [wait for wait in found if not _meets_outage(wait, log, over_at)]
        for row, found in waits.items()
    }
    inside = waits_at_outage(waits, log, over_at)
    return [
        _line(outside, "edit", "median <= 5 s, p95 <= 20 s", (0.5, 5.0), (0.95, 20.0)),
        _line(outside, "deletion", "p95 <= 10 s", (0.95, 10.0)),
        _line(outside, "move", "p95 <= 10 s", (0.95, 10.0)),
        _line(outside, "image", "all <= 60 s", (1.0, 60.0)),
        _line(outside, "membership", "all <= 30 s", (1.0, 30.0)),
        _line(outside, "left", "all <= 30 s", (1.0, 30.0)),
        _line(outside, "fan_out_5", "", ()),
        _line(outside, "fan_out_50", "all <= 180 s", (1.0, 180.0)),
        _line(outside, "fan_out_200", "", ()),
        _outage_line(inside, over_at),
        _deleted_line(waits["deletion"] + waits["move"], log, over_at),
        *_difference_lines(differences),
        _relapse_line(watch),
        *_request_lines(log, requests, delay_s),
        _need_line(watch, log, requests, delay_s),
        *_status_lines(log.status),
        Line("daemon ended by itself", "0", str(unexpected_ends), unexpected_ends == 0),
    ]


def _over_at(log: StormLog, requests: Iterable[LedgerRow]) -> float:
    """Return when the outage and the last Retry-After were over; 0 without an outage."""
    if log.outage is None:
        return 0.0
    refused = [row.at + RETRY_AFTER_S for row in requests if row.status == 503]
    return max([log.outage[1], *refused])


def waits_at_outage(
    waits: Mapping[str, Iterable[Wait]], log: StormLog, over_at: float
) -> list[Wait]:
    """Return what the outage delayed, users of edited templates left out: they have no limit."""
    return [
        wait
        for row, found in waits.items()
        for wait in found
        if not row.startswith("fan_out") and _meets_outage(wait, log, over_at)
    ]


def _meets_outage(wait: Wait, log: StormLog, over_at: float) -> bool:
    return log.outage is not None and wait.at < over_at and wait.at + wait.wait_s > log.outage[0]


def _waits(watch: Watch) -> dict[str, list[Wait]]:
    """Return the waits by row; a fan-out is one wait, until its last page."""
    waits: dict[str, list[Wait]] = {row: [] for row in _ROWS}
    fan_outs: dict[tuple[str, int], list[Wait]] = {}
    for watched in watch.all():
        end = watched.probed_at
        for each in watched.expectations:
            wait = _wait(each, end, watched.title)
            if each.row.startswith("fan_out"):
                fan_outs.setdefault((each.row, each.change), []).append(wait)
            elif each.row in waits:
                waits[each.row].append(wait)
    for (row, _), found in fan_outs.items():
        waits[row].append(max(found, key=lambda wait: (not wait.is_over, wait.wait_s)))
    return waits


def _wait(each: Expectation, end: float, title: str) -> Wait:
    over = each.seen_at is not None
    return Wait(each.at, max((each.seen_at or end) - each.at, 0.0), over, title)


def _line(
    waits: dict[str, list[Wait]], row: str, asked: str, *limits: tuple[float, float] | tuple[()]
) -> Line:
    found = waits[row]
    if not found:
        return Line(row, asked, "none", None)
    # What was not seen until the end counts as infinite.
    times = [wait.wait_s if wait.is_over else float("inf") for wait in found]
    seen = (
        f"{len(times)}: median {median(times):.1f} s, p95 {percentile(times, 0.95):.1f} s,"
        f" max {max(times):.1f} s, never {sum(not wait.is_over for wait in found)}"
    )
    judged = [percentile(times, limit[0]) <= limit[1] for limit in limits if limit]
    return Line(row, asked, seen, all(judged) if judged else None)


def _outage_line(inside: list[Wait], over_at: float) -> Line:
    asked = f"<= {CATCH_UP_S:.0f} s after it"
    if not inside:
        return Line("changes at the outage", asked, "none", None)
    after = [wait.at + wait.wait_s - over_at if wait.is_over else float("inf") for wait in inside]
    seen = f"{len(after)}: p95 {percentile(after, 0.95):.1f} s, max {max(after):.1f} s"
    return Line("changes at the outage", asked, seen, max(after) <= CATCH_UP_S)


def _deleted_line(waits: list[Wait], log: StormLog, over_at: float) -> Line:
    late = []
    for wait in waits:
        begins, ends = wait.at + DELETION_GRACE_S, wait.at + wait.wait_s
        if log.outage and log.outage[0] - DELETION_GRACE_S < wait.at < over_at + OUTAGE_GRACE_S:
            begins = max(begins, over_at + OUTAGE_GRACE_S)
        if ends > begins:
            late.append(f"{wait.what} {ends - wait.at:.0f} s")
    seen = f"{len(late)} of {len(waits)}: {', '.join(late[:5])}"
    return Line("deleted or moved, current > 15 s", "0", seen, not late)


def _difference_lines(differences: Differences) -> list[Line]:
    lines = []
    for kind in ("page", "redirect", "file", "absent", "left", "history"):
        found = differences.found.get(kind, {})
        seen = f"{len(found)} of {differences.compared.get(kind, 0)}"
        lines.append(Line(f"at the end, wrong: {kind}", "0", seen, not found))
    return lines


def _relapse_line(watch: Watch) -> Line:
    relapses = sum(len(watched.relapses) for watched in watch.all())
    return Line("right, then wrong without a change", "0", str(relapses), relapses == 0)


def _request_lines(log: StormLog, requests: Sequence[LedgerRow], delay_s: float) -> list[Line]:
    rows = [row for row in requests if row.at >= log.started_at]
    early = len(early_requests(rows, delay_s))
    storm = [row for row in rows if row.at < log.ended_at]
    api = sum("/w/api.php" in row.target for row in storm)
    share = api / len(storm) if storm else 0.0
    slots = (log.ended_at - log.started_at) / delay_s
    return [
        Line("requests early", "0", f"{early} of {len(rows)}", not early),
        Line("API share", "<= 35 %", f"{share:.1%} of {len(storm)}", share <= 0.35),
        Line("slots used", "", f"{len(storm) / slots:.1%}", None),
    ]


def _need_line(watch: Watch, log: StormLog, requests: Sequence[LedgerRow], delay_s: float) -> Line:
    """Tell how much of what one request a delay can do the storm asks for."""
    outage_s = log.outage[1] - log.outage[0] if log.outage else 0.0
    turns = (log.read_until_at - log.started_at - outage_s) / delay_s
    needed = least_requests(watch.all(), log.outage, CATCH_UP_S)
    rows = [row for row in requests if log.started_at <= row.at < log.read_until_at]
    polls = sum("/w/api.php" in row.target for row in rows)
    seen = f"{needed} copies, {polls} polls were made, {turns:.0f} turns; {len(rows)} requests"
    return Line("needed in time, to the end", "", seen, None)


def early_requests(rows: Iterable[LedgerRow], delay_s: float) -> list[LedgerRow]:
    """Return the requests within the delay, or within the Retry-After of a 503."""
    early, allowed_at = [], 0.0
    for row in rows:
        if row.at < allowed_at - PRECISION_S:
            early.append(row)
        allowed_at = row.at + (RETRY_AFTER_S if row.status == 503 else delay_s)
    return early


def _status_lines(probes: Sequence[StatusProbe]) -> list[Line]:
    told = [probe for probe in probes if probe.freshness is not None]
    if not told:
        return [Line("status", "19 of 20 inside", "no answer", None)]

    def share(holds: Callable[[StatusProbe], bool]) -> float:
        return mean(holds(probe) for probe in told)

    covered = share(lambda probe: probe.low <= probe.truth <= probe.high)
    width = mean(probe.high - probe.low for probe in told)
    modelled = [abs(p.modelled - p.truth) for p in told if p.modelled is not None]
    off = max(modelled, default=0.0)
    truth = f"truth {min(p.truth for p in told):.3f} to {max(p.truth for p in told):.3f}"
    return [
        Line(
            "status covers the truth",
            ">= 95 %",
            f"{covered:.1%} of {len(told)}; {truth}",
            covered >= 0.95,
        ),
        Line("width of its interval", "mean <= .1", f"{width:.3f}", width <= 0.1),
        Line(
            "model against the truth",
            "<= .05",
            f"mean {mean(modelled or [0]):.3f}, max {off:.3f}",
            off <= 0.05,
        ),
    ]


_ROWS = (
    "edit",
    "deletion",
    "move",
    "image",
    "membership",
    "left",
    "fan_out_5",
    "fan_out_50",
    "fan_out_200",
)
