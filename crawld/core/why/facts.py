"""What is known about a URL: the facts from which the answer is composed.

They are collected by `crawld/daemon/api/why_facts.py`, from the file alone or with what the running
daemon knows. Times are Unix seconds; None means unknown or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from crawld.core.page import Failure, Outcome, PageState

AHEAD_SHOWN: Final = 1_000
"""Pages before a never-visited one that are counted at most."""


class ConfigPlace(NamedTuple):
    """A line of a config file."""

    file: str
    line: int

    @property
    def text(self) -> str:
        """The place as editors and compilers write it."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class GrowthFacts:
    """The form of a URL, of which too few pages showed new text; see `UrlPattern`."""

    host: str
    pattern: str
    pages: int
    fresh: int


@dataclass(frozen=True, slots=True)
class PluginFacts:
    """The plug-in that refuses a URL, and its reason in words; empty: it gives none."""

    name: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """The site of a URL: that of its page, else the one whose scope fits best.

    Attributes:
        configured: whether it is still crawled.
        refusal: why its scope refuses the URL, as `Scope.refusal` or `refuses_requisite` names it.
        rule: the exclude rule that refuses it, or the include rule that admits it.
        place: its line in the config.
        rule_place: the line of the rule or key that refuses the URL.
        cap_place: the line of `max_pages`.
        wiki_refusal: why the wiki's titles refuse it.
        trap: the trap that the URL looks like.
        growth: the form of the URL, if links of that form are not followed any more.
        plugin: the plug-in that refuses it; only the daemon knows.
        max_depth, max_pages, max_pages_per_host, monthly_bytes: its limits.
        pages: how many it has; requisites, if the URL is one.
        received_bytes: this month.
        shared_with: other sites that name the page.
    """

    name: str
    source: str = "config"
    configured: bool = True
    paused: bool = False
    refusal: str | None = None
    rule: str | None = None
    place: ConfigPlace | None = None
    rule_place: ConfigPlace | None = None
    cap_place: ConfigPlace | None = None
    wiki_refusal: str | None = None
    trap: str | None = None
    growth: GrowthFacts | None = None
    plugin: PluginFacts | None = None
    max_depth: int | None = None
    max_pages: int | None = None
    pages: int = 0
    max_pages_per_host: int | None = None
    monthly_bytes: int | None = None
    received_bytes: int = 0
    min_revisit_s: float = 0.0
    policy: str = "index"
    shared_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsFacts:
    """What the robots.txt of the URL's origin says.

    Attributes:
        verdict: `open`, `rules` or `closed`; None: it was never read.
        allowed: whether its rules allow the URL; None: not known.
        line, text: the line that decides, and its number from 1; None: no line matches.
    """

    url: str
    verdict: str | None = None
    status: int | None = None
    fetched_at: float | None = None
    allowed: bool | None = None
    line: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """The host of the URL.

    Attributes:
        pages, visited: known pages, and those that were visited.
        closed_until: end of a Retry-After.
        backoff_level: doublings of the delay after trouble at `backoff_at`.
        delay_s, base_delay_s: delay between requests with and without back-off.
        quiet_until: end of the quiet hours that have begun.
        robots_closed_until: until when its pages wait because robots.txt cannot be read.
        next_at: earliest time of the next request by its delay; None: only the daemon knows.
        located: whether an address of it was ever known.
        vanishing_since: since when its pages disappear in masses.
        shared_rate: name of the limit of requests or bytes per second that it waits for now.
        rate_opens_at: when the next of the hosts that wait for it may be fetched.
        rate_waiting: how many of them wait.
    """

    name: str
    paused: bool = False
    pages: int = 0
    visited: int = 0
    closed_until: float | None = None
    backoff_level: int = 0
    backoff_at: float | None = None
    delay_s: float = 0.0
    base_delay_s: float = 0.0
    quiet_until: float | None = None
    robots_closed_until: float | None = None
    next_at: float | None = None
    located: bool = True
    vanishing_since: float | None = None
    shared_rate: str | None = None
    rate_opens_at: float = 0.0
    rate_waiting: int = 0


class ReplicaPages(NamedTuple):
    """Pages of a replica.

    Attributes:
        resting: suspended; `deferred` of these were never visited, `elsewhere` have their twin on
            another host than the canonical one.
        differing: visited, since their text is another.
        repeated: visited, since their text stands on many paths of the host.
        only_here: visited, since the canonical host has no copy at their paths.
        undecided: visited, not decided yet.
    """

    resting: int = 0
    deferred: int = 0
    differing: int = 0
    repeated: int = 0
    only_here: int = 0
    undecided: int = 0
    elsewhere: int = 0

    @property
    def in_all(self) -> int:
        """All pages that rest or are visited."""
        return self.resting + self.differing + self.repeated + self.only_here + self.undecided


class ComparisonFacts(NamedTuple):
    """How a page of a replica compares with the page at the same path of the canonical host.

    Attributes:
        verdict: a `PageVerdict`.
        visit_at: when a deferred page is visited at the latest.
    """

    verdict: str
    compared_at: float
    visit_at: float | None = None


class ReplicaFacts(NamedTuple):
    """The host is a replica of another, or may be one.

    Attributes:
        status, waits_for: as `crawld/store/replica/replica.py` has them.
        canonical_url: the page with the copy there, or on the host under which it rests.
        reason: why the canonical host is kept, or why this one is held or withdrawn.
        look_at: when pages that rest are compared again.
        pages: of the host.
        page: of the URL, if it was compared.
    """

    canonical_host: str
    status: str
    since: float
    canonical_url: str | None = None
    reason: str = ""
    waits_for: str | None = None
    look_at: float = 0.0
    pages: ReplicaPages = ReplicaPages()
    page: ComparisonFacts | None = None


class RefusalFacts(NamedTuple):
    """A link to the URL was refused, for a reason as the status counts it."""

    reason: str
    at: float


class HintFacts(NamedTuple):
    """A source reports a change at a time."""

    source: str
    at: float


class VisitFacts(NamedTuple):
    """One visit."""

    at: float
    outcome: Outcome
    failure: str | None
    detail: str | None
    status: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """The page of the URL.

    Attributes:
        found_on: URL of the page that named it.
        ahead: never-visited pages of its site and host that come before it, at most `AHEAD_SHOWN`.
        quarantined: the step that must not be done with its bytes.
        redirect_known: whether the target of its redirect is a page.
        hints: newest first; `visits` too.
        change: its change model in words.
        copy_id: the copy that readers see; `copy_note`: what they see of it.
        removal: `deletion` or `move`, as its wiki reports, at a time, and where it was moved to.
    """

    state: PageState
    depth: int
    seed: bool
    requisite: bool
    title: str | None
    discovered_at: float
    found_on: str | None
    last_visit_at: float | None
    last_change_at: float | None
    last_outcome: Outcome | None
    last_failure: str | None
    visit_count: int
    change_count: int
    failure_count: int
    gone_count: int
    retry_at: float | None
    redirect_url: str | None
    redirect_known: bool = False
    ahead: int = 0
    quarantined: str | None = None
    hints: tuple[HintFacts, ...] = ()
    visits: tuple[VisitFacts, ...] = ()
    change: str = ""
    copy_id: int | None = None
    copy_note: str = ""
    removal: str | None = None
    removed_at: float | None = None
    moved_to: str | None = None

    @property
    def failing(self) -> bool:
        """Whether the last visit brought no answer about the page."""
        return self.last_outcome in (Outcome.FAILED, Outcome.BLOCKED)

    @property
    def robots_excluded(self) -> bool:
        """Whether robots.txt forbade it when its turn came."""
        return self.state is PageState.EXCLUDED and self.last_failure in (None, Failure.ROBOTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFacts:
    """The URL as a page of a wiki of which the site covers a part.

    Attributes:
        title: the title that the URL shows; None: it shows none, or the wiki is not known yet.
        known: whether the wiki has been asked about itself.
        reasons: why the title belongs to the part; empty: it does not.
    """

    title: str | None
    known: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFacts:
    """What only the running daemon knows.

    Attributes:
        pauses: why everything is paused: `operator`, `drain`, `disk`, `disk_room`, `network`.
        stopping: whether it is shutting down.
        once: whether it visits each page once.
    """

    pauses: frozenset[str] = frozenset()
    stopping: bool = False
    once: bool = False


class DuplicateFacts(NamedTuple):
    """The URL that stands for a URL by learnt rules.

    Attributes:
        reasons: what the rules say, in words.
        number: of the first rule.
    """

    url: str
    reasons: tuple[str, ...]
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFacts:
    """All facts about a URL.

    Attributes:
        given: the URL as it was asked for; `url` is its canonical form.
        now: the time of the answer.
        purged_at, purge_reason: if the operator deleted it for good.
        refused: the last refusal of a link to it that is still known.
        sites: names of the sites that are crawled.
        live: None: the file alone was read.
    """

    given: str
    url: str
    now: float
    robots: RobotsFacts
    host: HostFacts
    purged_at: float | None = None
    purge_reason: str | None = None
    site: SiteFacts | None = None
    page: PageFacts | None = None
    replica: ReplicaFacts | None = None
    duplicate: DuplicateFacts | None = None
    part: PartFacts | None = None
    refused: RefusalFacts | None = None
    sites: tuple[str, ...] = ()
    live: LiveFacts | None = None
