"""Requests and responses of the control socket: status, sites, hosts, pages, jobs, commands.

These are a stable interface (`/openapi.json` is made from them). Units are in the names; times are
Unix seconds.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from crawld.core.page import Outcome, PageState
from crawld.daemon.api.schemas.form import Form
from crawld.daemon.api.schemas.page_profiles import SectionProfile
from crawld.daemon.api.schemas.plugin import PluginStatus
from crawld.daemon.api.schemas.replica_outlook import ReplicaOutlook
from crawld.daemon.api.schemas.slots import RateLimitStatus, Slots
from crawld.daemon.api.schemas.url_pattern import UrlPatternStatus
from crawld.daemon.phase import Phase


class Problem(BaseModel):
    """Why a request failed."""

    error: str
    hint: str = ""


class InvalidField(BaseModel):
    """A parameter or a field of a request that is not valid; `loc`: where, from the outside."""

    loc: list[str | int]
    msg: str
    type: str


class InvalidRequest(Problem):
    """Why a request is not valid; `detail` is empty if the fault is not in one field."""

    detail: list[InvalidField] = []


class MemoryStatus(BaseModel):
    """Memory of fetched bodies and their analysis.

    `used_bytes` is held by fetches and analyses of larger pages, `stale_bytes` is freed and not yet
    returned to the system, `waiting` counts the fetches and analyses that wait for their share.
    """

    used_bytes: int
    stale_bytes: int
    limit_bytes: int
    waiting: int


class AuditedFreshness(BaseModel):
    """The mean freshness of a period, measured by random visits.

    `freshness` is the share of `audits` that found the copy up to date, `low` and `high` its 95 %
    interval (Wilson), `modelled` the freshness that the change model expected of the same pages at
    the same times. Without an audit they are null. `unknown` counts visits without a result.
    """

    since: float
    audits: int
    unknown: int
    freshness: float | None
    low: float
    high: float
    modelled: float | None


class AuditStatus(AuditedFreshness):
    """The audits of a site on one day."""

    site: str


class StaleCopies(BaseModel):
    """How many copies of a site are stale now, by what is known of them; expected numbers.

    `reported`: a source says that the page changed and no visit has seen it yet, or the page is
    gone. `fan_out`: the page includes a template that was edited, and is not listed yet.
    `unreported`: changed since the sources were last asked. `unnoticed`: changed, and no source
    reports it.
    """

    reported: float
    fan_out: float
    unreported: float
    unnoticed: float


class FreshnessStatus(BaseModel):
    """How many copies of a site equal their page now, and over the last day and week.

    `freshness` is the share at the time `at`, estimated from hints, change models and visits; `low`
    and `high` its 95 % interval: in 19 of 20 cases the true share at that time lies inside.
    `modelled` is the estimate without the correction by what visits found. Copies that are known to
    be stale count as stale in all of them. Without copies nothing is known: null, from 0 to 1.
    `sampled` of `copies` were looked at; half of them were visited in the last `checked_ago_s`.
    `shown` is the freshness of what is served and exported
    where pins and `settle_s` hold copies back, else null. For a host there is `last_week` only.
    """

    site: str
    host: str | None = None
    at: float | None = None
    copies: int = 0
    sampled: int = 0
    freshness: float | None = None
    low: float = 0.0
    high: float = 1.0
    modelled: float | None = None
    checked_ago_s: float | None = None
    stale: StaleCopies | None = None
    shown: float | None = None
    last_day: AuditedFreshness | None = None
    last_week: AuditedFreshness | None = None


class QuarantinedPage(BaseModel):
    """A page or document that was under way when the process froze, died or was killed.

    `held`: it is stored without analysis; else it is a suspect, which is analysed once more. `step`
    was under way.
    """

    url: str
    held: bool
    step: Literal["decoding", "analysis"]
    found_at: float


class QuarantineReleaseForm(Form):
    """Analyse a page or document in quarantine again."""

    url: str


class Status(BaseModel):
    """The daemon at a glance.

    `loop_stall_max_ms` is the longest time that the event loop stood still after the start, and
    `loop_stall_by` the task and page that held it; the `recent` ones are those of the last five to
    ten minutes. `notify_troubles`: what is wrong with notifications, by rule. `quarantined` pages
    are stored without analysis; `quarantined_pages` are the newest of them, and suspects.
    """

    version: str
    pid: int
    db: str
    phase: Phase
    pauses: list[str]
    stalled: str | None
    started_at: float
    now: float
    pages: dict[PageState, int]
    pages_in_all: int
    visits: dict[Outcome, int]
    new_pages: int = Field(default=0, description="first copies, among the visits that changed")
    unrecorded: int
    wire_bytes: int
    refused: dict[str, int]
    slots: Slots
    rate_limits: list[RateLimitStatus] = []
    memory_bytes: int
    memory: MemoryStatus | None = None
    loop_stall_max_ms: float = 0.0
    loop_stall_by: str = ""
    loop_stall_recent_ms: float = 0.0
    loop_stall_recent_by: str = ""
    freshness: list[FreshnessStatus] = []
    vanishing: dict[str, float] = {}
    notify_troubles: dict[str, str] = {}
    quarantined: int = 0
    quarantined_pages: list[QuarantinedPage] = []
    plugins: list[PluginStatus] = []


class SiteStatus(BaseModel):
    """One site.

    `pages_shared`: further pages that it names too; they are visited for another site.
    """

    name: str
    source: str
    paused: bool
    added_at: float
    hosts: list[str]
    host_delay_s: float
    pages: dict[PageState, int]
    pages_in_all: int
    pages_shared: int = 0
    requisites: int = 0
    received_bytes_this_month: int | None = None
    monthly_bytes: int | None = None


class HostStatus(BaseModel):
    """One host in a list."""

    host: str
    address: str | None
    paused: bool
    pages: dict[PageState, int]
    pages_in_all: int
    visit_count: int
    change_count: int
    failure_count: int
    wire_bytes: int
    last_fetch_at: float | None
    delay_s: float | None
    backoff_level: int
    next_fetch_in_s: float | None
    vanishing_since: float | None = None


class RobotsStatus(BaseModel):
    """The robots.txt of one origin.

    `rules` and `rules_ignored` count the rules for us that are in memory: those that are matched as
    written, and those beyond the limit, which forbid more than they say; null: not in memory.
    """

    origin: str
    verdict: str | None
    status: int | None
    fetched_at: float | None
    text_bytes: int
    rules: int | None = None
    rules_ignored: int | None = None


class RefusedUrls(BaseModel):
    """URLs of a host that were refused for one reason."""

    reason: str
    refused: int
    example: str
    last_at: float


class HostDetail(HostStatus):
    """One host in full."""

    replica: ReplicaOutlook | None
    replicas: list[str] = Field(description="Replicas of this host, at most 100.")

    base_delay_s: float | None
    trouble_at: float | None
    closed_until: float | None
    robots: list[RobotsStatus]
    refused_urls: list[RefusedUrls]
    url_patterns: list[UrlPatternStatus] = []
    profiles: list[SectionProfile] = []


class VisitStatus(BaseModel):
    """One visit."""

    visit_id: int
    url: str
    host: str
    visited_at: float
    outcome: Outcome
    failure: str | None
    detail: str | None
    status: int | None
    duration_s: float | None
    wire_bytes: int
    version_id: int | None
    difference: float | None = None
    first_copy: bool = Field(default=False, description="a new page, with the outcome changed")


class VersionStatus(BaseModel):
    """One stored copy.

    `truncated`: only the start of a page that is larger than the limits. `tags`: what plug-ins keep
    with it, by `PLUGIN.NAME`.
    """

    version_id: int
    visited_at: float
    status: int
    content_type: str | None
    size_bytes: int
    stored_bytes: int
    truncated: bool = False
    tags: dict[str, str] = {}


class ModelStatus(BaseModel):
    """The change model of one page; rates are changes per day."""

    visits: int
    changed_visits: int
    last_change_at: float | None
    age_s: float | None
    change_rate_per_day: float
    rate_interval_per_day: tuple[float, float]
    prior_rate_per_day: float
    class_days: float | None = Field(description="null while no class outweighs all others")
    class_interval_days: tuple[float, float] = Field(description="the classes that hold 90 %")
    class_probabilities: dict[float, float]
    unchanged_probability: float
    recent_gaps_s: list[float]
    gap_histogram: list[float]
    last_modified_trusted: bool
    text: str = Field(description="how often the page changes, for people")
    has_evidence: bool = Field(description="whether it was seen to change often enough for a rate")


class NoiseStatus(BaseModel):
    """Number of noise rules of a page and its host, and of pages fetched twice to learn them."""

    page_rules: int
    host_rules: int
    confirmations: int


Trust = Literal["trusted", "lies", "restless", "in_future"]


class ValidatorStatus(BaseModel):
    """How far the validators and the clock of an origin are trusted."""

    etag: Trust
    last_modified: Trust
    clock_skew_s: float


class MembershipStatus(BaseModel):
    """A reason for which a page belongs to the part of a wiki that its site covers, since when."""

    since: float
    reason: str


class PageDetail(BaseModel):
    """One page in full."""

    url: str
    site: str
    host: str
    state: PageState
    depth: int
    seed: bool
    importance: float
    title: str | None
    discovered_at: float
    last_visit_at: float | None
    last_change_at: float | None
    last_outcome: Outcome | None
    last_failure: str | None
    visit_count: int
    change_count: int
    failure_count: int
    retry_at: float | None
    gone_count: int
    redirect_url: str | None
    etag: str | None
    last_modified: str | None
    change_streak: int
    next_visit_at: float | None
    next_visit_why: str
    model: ModelStatus | None
    noise: NoiseStatus
    validators: ValidatorStatus
    memberships: list[MembershipStatus]
    visits: list[VisitStatus]
    versions: list[VersionStatus]


class PageStatus(BaseModel):
    """One page in a list."""

    page_id: int
    url: str
    state: PageState
    depth: int
    title: str | None
    last_visit_at: float | None
    last_change_at: float | None
    last_outcome: Outcome | None


class JobStatus(BaseModel):
    """One job of the daemon: its last run, next run and progress."""

    name: str
    running: bool
    every_s: float
    next_run_at: float | None
    last_started_at: float | None
    last_finished_at: float | None
    last_duration_s: float | None
    result: str | None
    detail: str | None
    progress: dict[str, int]


class WikiPartStatus(BaseModel):
    """The titles of a part of a wiki: by reason, as listed by outcome, and those with a problem."""

    site: str
    members: dict[str, int]
    listed: dict[str, int]
    problems: list[str]


class WikiStatus(BaseModel):
    """One wiki whose API gives change histories, the sites that use it, and how far it is read."""

    sites: list[str]
    origin: str
    api_url: str
    generator: str | None
    pages: dict[str, int]
    request_count: int
    change_count: int
    trouble: str | None
    trouble_detail: str | None
    trouble_count: int
    closed_until: float | None
    events_waiting: int
    parts: list[WikiPartStatus]


class AddForm(Form):
    """URLs to mirror, as seeds of a known site or as a new one."""

    urls: Annotated[list[str], Field(min_length=1, max_length=10_000)]
    site: str | None = None
    max_depth: Annotated[int, Field(ge=0, le=10_000)] | None = None
    max_pages: Annotated[int, Field(ge=1)] | None = None
    host_delay_s: Annotated[float, Field(ge=0, le=86_400 * 30)] | None = None
    allow_private: bool = False


class Added(BaseModel):
    """The result of an add."""

    site: str
    new_site: bool = False
    admitted: int
    refused: list[RefusedUrls]
    warnings: list[str] = Field(default=[], description="why hosts cannot be fetched, for people")


class TargetForm(Form):
    """What to pause or resume: one site, one host, or everything."""

    site: str | None = None
    host: str | None = None


class RemoveForm(Form):
    """The site to remove from the crawl; its pages stay in the file."""

    site: str


class ShutdownForm(Form):
    """How to stop: after the turns under way, or at once."""

    now: bool = False


class Done(BaseModel):
    """The result of a command."""

    done: str


class Reloaded(BaseModel):
    """The keys that a reload changed."""

    changed: list[str]
