"""`crawld bench profiles`: hosts that answer by language, device and type are asked as is wanted.

One daemon in this process mirrors hosts of a simulated web over real sockets, each of which answers
in the wanted form to one of four request profiles, or to any. Then half of the hosts change their
mind, a simulated day passes, and every page is visited again. No text ever changes, so each change
that the mirror counts is a false one. Truth is what the hosts saw and sent, not what crawld says.

    wanted_hosts_per_100                   hosts of which every shown copy has the wanted form
    extra_request_share                    requests that only tried a profile, of all requests
    early_requests, contactless_requests   sent before the delay was over; without the contact
    found_again_visits                     most visits until a host that changed its mind was
                                           asked in the new way
    false_changes, visits                  changes and events of change counted, in so many visits

`first` counts one way to ask for all, the best single one: `wanted_hosts_per_100` of a crawler that
learns nothing.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import apsw
import trio

from crawld.bench.result import Metrics, build_result, figures
from crawld.bench.run import Progress
from crawld.config.checks import check_config
from crawld.config.model import Config
from crawld.core.units import DAY_S
from crawld.core.url import split_url
from crawld.daemon.clock import Clock
from crawld.daemon.daemon import Daemon
from crawld.daemon.environment import Environment
from crawld.daemon.run import run_daemon
from crawld.daemon.start import Start
from crawld.errors import OperatorError
from crawld.simweb.answer_forms import RULES, FormSite, Rule, anyhow
from crawld.simweb.server import PRECISION_S, ServerAddress, SimWeb
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import event, page
from crawld.store.frontier.page import PageRecord
from crawld.store.versions import version

CONTACT: Final = "bench@example.org"

PROFILES: Final = (
    {"name": "plain"},
    {"name": "german", "accept_language": "de"},
    {"name": "phone", "user_agent_suffix": "Mobile"},
    {"name": "html", "accept": "text/html"},
)
WANTED: Final = {"content_types": ["text/html"], "language": "de"}

_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class ProfilesSize:
    """Size of the web; every host has `pages` pages beside its first.

    Attributes:
        limit_s: longest time of each round of visits.
    """

    hosts: int = 50
    pages: int = 100
    delay_s: float = 0.05
    seed: int = 20
    limit_s: float = 3_600.0


QUICK: Final = ProfilesSize(hosts=8, pages=15, delay_s=0.02)


def run(
    *,
    quick: bool,
    progress: Progress,
    hosts: int | None = None,
    seed: Sequence[int] | None = None,
) -> dict[str, object]:
    """Run the benchmark, once for each seed."""
    base = QUICK if quick else ProfilesSize()
    runs, single = [], []
    for each in seed or [base.seed]:
        size = ProfilesSize(hosts or base.hosts, base.pages, base.delay_s, each)
        found = trio.run(measure, size, progress)
        progress(f"seed {each}: {figures(found)}")
        runs.append(found)
        best = max(list(rules_of(size).values()).count(rule) for rule in RULES.values())
        single.append({"wanted_hosts_per_100": 100.0 * best / size.hosts})
    return build_result("profiles", runs, {"first": single})


def rules_of(size: ProfilesSize) -> dict[str, Rule]:
    """Return the rule of each host, drawn by the seed."""
    rng = random.Random(size.seed)
    names = list(RULES.values())
    return {f"h{number}.test": rng.choice(names) for number in range(size.hosts)}


@dataclass(slots=True)
class _Day:
    """The wall clock of the daemon, which can be set forward."""

    shift_s: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.shift_s


@dataclass(slots=True)
class _Run:
    """One run: the web, the file, and how many requests were sent before the hosts changed."""

    size: ProfilesSize
    db: Path
    site: FormSite
    web: SimWeb
    day: _Day = field(default_factory=_Day)
    before: int = 0
    changed: frozenset[str] = frozenset()


async def measure(size: ProfilesSize, progress: Progress) -> Metrics:
    """Mirror a web, let half of its hosts change their mind, and visit it again."""
    with tempfile.TemporaryDirectory(prefix="crawld-bench-") as name:
        site = FormSite(rules_of(size), size.pages)
        run = _Run(size, Path(name) / "mirror.db", site, SimWeb([site]))
        async with trio.open_nursery() as nursery:
            address: ServerAddress = await nursery.start(run.web.serve)
            daemon: Daemon = await nursery.start(run_daemon, _start_of(run, address))
            pages = size.hosts * (size.pages + 1)
            await _until_visits(daemon, pages, size.limit_s, progress)
            await daemon.crawl.recorder.drain()
            run.before = len(site.asked)
            run.changed = _change_minds(run)
            run.day.shift_s += DAY_S
            await daemon.crawl.schedule.wake_all()
            await _until_visits(daemon, 2 * pages, size.limit_s, progress)
            visits = sum(daemon.crawl.visitor.counts.values())
            await daemon.drain()
            daemon.stop_now()
            nursery.cancel_scope.cancel()
        with closing(open_connection(run.db, read_only=True)) as connection:
            return _metrics(run, connection, visits)


def _start_of(run: _Run, address: ServerAddress) -> Start:
    hosts = list(run.site.hosts)
    tables = {
        "daemon": {"db": str(run.db), "contact": CONTACT},
        "dns": {"hosts": {host: ["127.0.0.1"] for host in hosts}},
        "politeness": {"host_delay_s": run.size.delay_s, "address_delay_s": 0.0},
        "content": {"confirm_pages": 0},
        "jobs": {"audit_share": 0.0},
        "store": {"min_free_bytes": 0},
        "site": [
            {
                "name": "web",
                "seeds": [address.url(host) for host in hosts],
                "allow_private": True,
                "profiles": PROFILES,
                "wanted": WANTED,
            }
        ],
    }
    config = Config.model_validate(tables)
    _, seeds = check_config(config)
    return Start(config=config, seeds=seeds, environment=Environment(clock=Clock(wall=run.day)))


def _change_minds(run: _Run) -> frozenset[str]:
    """Let every second host answer by another rule; return which.

    None begins to answer everybody alike: the request in use would get another text, which is a
    change of the page.
    """
    rng = random.Random(run.size.seed + 1)
    changed = list(run.site.hosts)[::2]
    for host in changed:
        others = [each for each in RULES.values() if each not in (run.site.rules[host], anyhow)]
        run.site.rules[host] = rng.choice(others)
    return frozenset(changed)


async def _until_visits(daemon: Daemon, count: int, limit_s: float, progress: Progress) -> None:
    told, counts = 0, daemon.crawl.visitor.counts
    with trio.move_on_after(limit_s):
        while sum(counts.values()) < count:
            if sum(counts.values()) - told >= 1_000:
                told = sum(counts.values())
                progress(f"{told:,} visits")
            await trio.sleep(_POLL_S)
        return
    raise OperatorError(f"made only {sum(counts.values())} of {count} visits: {dict(counts)}")


# --- what came of it -----------------------------------------------------------------------------


def _metrics(run: _Run, connection: apsw.Connection, visits: int) -> Metrics:
    asked = run.site.asked
    pages = page.list_pages(connection, limit=2 * run.size.hosts * (run.size.pages + 1))
    changes = sum(max(each.change_count - 1, 0) for each in pages)
    # The first copy of each page is an event, too.
    events = event.count(connection) - len(pages)
    return {
        "wanted_hosts_per_100": 100.0 * _wanted_hosts(connection, pages) / run.size.hosts,
        "extra_request_share": (len(asked) - visits) / len(asked),
        "early_requests": float(_early(run)),
        "contactless_requests": float(
            sum(CONTACT not in each.headers.get("user-agent", "") for each in asked)
        ),
        "found_again_visits": float(max(_found_again(run).values(), default=0)),
        "false_changes": float(changes + events),
        "visits": float(visits),
    }


def _wanted_hosts(connection: apsw.Connection, pages: Sequence[PageRecord]) -> int:
    """Return how many hosts are shown in German throughout."""
    german: dict[str, bool] = {}
    for each in pages:
        shown = version.read_body(connection, each.version_id) if each.version_id else None
        host = split_url(each.url).host
        german[host] = german.get(host, True) and "Flüsse" in (shown or b"").decode()
    return sum(german.values())


def _early(run: _Run) -> int:
    """Return how many requests came to a host before its delay was over."""
    early = 0
    for host in run.site.hosts:
        times = [row.at for row in run.web.ledger.requests(host)]
        least_s = run.size.delay_s - PRECISION_S
        early += sum(later - sooner < least_s for sooner, later in pairwise(times))
    return early


def _found_again(run: _Run) -> dict[str, int]:
    """Return how many pages each host was asked for until its new way was found."""
    found: dict[str, int] = {}
    pages: dict[str, set[str]] = {}
    for each in run.site.asked[run.before :]:
        if each.host not in run.changed or each.host in found:
            continue
        pages.setdefault(each.host, set()).add(each.path)
        if each.german:
            found[each.host] = len(pages[each.host])
    never = run.size.pages + 1
    return {host: found.get(host, never) for host in run.changed}
