"""What needs the operator's attention, the worst first, each with the command or key that helps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from crawld.core.display import plural
from crawld.daemon.api.schemas.hints import HintSourceStatus
from crawld.daemon.api.schemas.status import JobStatus, SiteStatus, Status, WikiStatus
from crawld.daemon.dashboard.hosts_summary import HostsSummary
from crawld.dashboard.rendering import link
from crawld.dashboard.words import ago, duration
from crawld.store.replica.replica import WaitsFor

Severity = Literal["bad", "warn", "note"]

MOST: Final = 30
"""Most concerns of one kind: sites, hosts, jobs."""

STALL_MS: Final = 500.0
"""A stall of the event loop that delays requests noticeably."""

PAUSES: Final[dict[str, tuple[Severity, str, str]]] = {
    "operator": ("warn", "Everything is paused.", "crawlctl resume"),
    "drain": ("warn", "Everything is paused, and all is in the file.", "crawlctl resume"),
    "disk": ("bad", "The crawl is paused: commits fail.", "check the disk; it resumes by itself"),
    "disk_room": (
        "bad",
        "The crawl is paused: the disk is nearly full.",
        "free some space, or lower [store] min_free_bytes",
    ),
    "network": ("warn", "The network is down.", "it resumes by itself"),
}
_SEVERITIES: Final[dict[Severity, int]] = {"bad": 0, "warn": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class Concern:
    """Something that needs attention.

    Attributes:
        severity: `bad`: the mirror suffers now; `warn`: a part of it does; `note`: to know.
        text: what it is, a sentence.
        remedy: the command or config key that helps.
        target: page of the dashboard with more, or empty.
    """

    severity: Severity
    text: str
    remedy: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What concerns are found in, besides the status.

    Attributes:
        replicas: how many held replicas wait for what (`ReplicaRow.waits_for`).
    """

    hosts: HostsSummary
    sites: Sequence[SiteStatus] = ()
    jobs: Sequence[JobStatus] = ()
    sources: Sequence[HintSourceStatus] = ()
    replicas: Mapping[WaitsFor, int] = field(default_factory=dict)
    wikis: Sequence[WikiStatus] = ()


def concerns(status: Status, known: Surroundings) -> list[Concern]:
    """Return what needs attention, the worst first."""
    found = [
        *_of_daemon(status),
        *_of_hosts(status, known.hosts),
        *_of_sites(known.sites),
        *_of_jobs(known.jobs),
        *_of_sources(known, status.now),
        *_of_replicas(known.replicas),
    ]
    return sorted(found, key=lambda each: _SEVERITIES[each.severity])


def _of_daemon(status: Status) -> Iterator[Concern]:
    if status.stalled:
        yield Concern("bad", f"Commits fail: {status.stalled}.", "check the disk")
    for reason in status.pauses:
        unknown: tuple[Severity, str, str] = ("warn", f"Paused: {reason}.", "crawlctl resume")
        yield Concern(*PAUSES.get(reason, unknown))
    if status.phase != "running":
        yield Concern("note", f"The daemon is {status.phase}.", "")
    if status.quarantined:
        text = f"{plural(status.quarantined, 'page')} stored without analysis, after a crash."
        yield Concern("warn", text, "crawlctl quarantine")
    for name, trouble in list(status.notify_troubles.items())[:MOST]:
        text = f"Messages of the rule {name} wait: {trouble}."
        yield Concern("warn", text, f"crawlctl notify retry {name}")
    if status.loop_stall_recent_ms >= STALL_MS:
        text = f"Requests were late by up to {status.loop_stall_recent_ms:.0f} ms lately."
        yield Concern("note", text, f"it was busy with {status.loop_stall_recent_by}")


def _of_hosts(status: Status, hosts: HostsSummary) -> Iterator[Concern]:
    for host, since in list(status.vanishing.items())[:MOST]:
        text = f"{host} loses too many pages at once, since {ago(since, status.now)}; all are kept."
        yield Concern("warn", text, "look at the site", link("host", name=host))
    for each in hosts.worst[:5]:
        if each.closed_until is not None and each.closed_until > status.now:
            text = f"{each.host} asked for no requests, {ago(each.closed_until, status.now)} again."
        else:
            text = f"{each.host} is asked every {duration(each.delay_s)} only, after trouble."
        remedy = f"crawlctl forgive {each.host}"
        yield Concern("warn", text, remedy, link("host", name=each.host))
    if hosts.backing_off > 5:
        text = f"{plural(hosts.backing_off - 5, 'more host')} in back-off."
        yield Concern("warn", text, "crawlctl hosts", link("hosts"))
    if hosts.paused:
        text = f"{plural(hosts.paused, 'host')} paused by the operator."
        yield Concern("note", text, "crawlctl resume --host HOST", link("hosts"))


def _of_sites(sites: Sequence[SiteStatus]) -> Iterator[Concern]:
    for site in sites[:1_000]:
        target = link("site", name=site.name)
        if site.paused:
            remedy = f"crawlctl resume --site {site.name}"
            yield Concern("note", f"Site {site.name} is paused.", remedy, target)
        used, most = site.received_bytes_this_month, site.monthly_bytes
        if used is not None and most is not None and used >= most:
            text = f"Site {site.name} has used up its bytes of this month."
            yield Concern("warn", text, "raise monthly_bytes of the site", target)


def _of_jobs(jobs: Sequence[JobStatus]) -> Iterator[Concern]:
    for job in jobs:
        if job.result == "failed":
            text = f"The job {job.name} failed: {job.detail or 'see the log'}."
            yield Concern("warn", text, f"crawlctl run-job {job.name}", link("jobs"))


def _of_sources(known: Surroundings, now: float) -> Iterator[Concern]:
    for source in known.sources[:1_000]:
        if source.trouble_count >= 3:
            kind = source.kind.replace("_", " ")
            text = f"{kind} of {source.host}: {source.trouble_detail or source.trouble}."
            yield Concern("warn", text, "crawlctl hints", link("hints"))
    for wiki in known.wikis[:MOST]:
        if wiki.trouble and wiki.trouble_count >= 3:
            text = f"The API of {wiki.origin} fails: {wiki.trouble_detail or wiki.trouble}."
            yield Concern("warn", text, "crawlctl wikis", link("hints"))
        for part in wiki.parts:
            for problem in part.problems[:5]:
                yield Concern("note", f"Site {part.site}: {problem}.", "correct the list of titles")


def _of_replicas(waiting: Mapping[WaitsFor, int]) -> Iterator[Concern]:
    if asked := waiting.get("operator", 0):
        text = f"{plural(asked, 'host')} may be a replica; you are asked to decide."
        yield Concern("note", text, "crawlctl replicas", link("replicas"))
    if turn := waiting.get("turn", 0):
        text = f"{plural(turn, 'replica')} found at once; searches prune them in parts."
        yield Concern("note", text, "crawlctl replicas confirm --all --dry-run", link("replicas"))
