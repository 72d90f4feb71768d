"""What the control socket says and takes: one pydantic model a form, units in the names.

These are a stable surface (`/openapi.json` is made from them). Instants are Unix seconds.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from crawld.core.page import Outcome, PageState
from crawld.daemon.api.schemas.audit import FreshnessStatus
from crawld.daemon.phase import Phase


class Form(BaseModel):
    """Something a client sends; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """Why a request was not carried out."""

    error: str
    hint: str = ""


class Slots(BaseModel):
    """The fetch slots."""

    hosts: int
    on_turn: int
    waiting: int
    served: int
    lateness_p50_ms: float
    lateness_p99_ms: float


class Status(BaseModel):
    """The daemon at a glance."""

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
    unrecorded: int
    wire_bytes: int
    refused: dict[str, int]
    slots: Slots
    memory_bytes: int
    freshness: list[FreshnessStatus] = []
    vanishing: dict[str, float] = {}


class SiteStatus(BaseModel):
    """One site."""

    name: str
    source: str
    paused: bool
    added_at: float
    hosts: list[str]
    host_delay_s: float
    pages: dict[PageState, int]
    pages_in_all: int
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
    """What is known of one origin's robots.txt."""

    origin: str
    verdict: str | None
    status: int | None
    fetched_at: float | None
    text_bytes: int


class RefusedUrls(BaseModel):
    """URLs of a host that were found and not admitted, for one reason."""

    reason: str
    refused: int
    example: str
    last_at: float


class HostDetail(HostStatus):
    """One host, all there is."""

    closed_until: float | None
    robots: list[RobotsStatus]
    refused_urls: list[RefusedUrls]


class VisitStatus(BaseModel):
    """One attempt."""

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


class VersionStatus(BaseModel):
    """One stored copy."""

    version_id: int
    visited_at: float
    status: int
    content_type: str | None
    size_bytes: int
    stored_bytes: int


class ModelStatus(BaseModel):
    """What is known about the changes of one page; rates are changes per day."""

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
    gap_histogram: list[int]
    last_modified_trusted: bool


class NoiseStatus(BaseModel):
    """How many kinds of blocks are known to change by themselves, and how that was learnt."""

    page_rules: int
    host_rules: int
    confirmations: int


Trust = Literal["trusted", "lies", "restless", "in_future"]


class ValidatorStatus(BaseModel):
    """How far the validators and the clock of an origin are believed."""

    etag: Trust
    last_modified: Trust
    clock_skew_s: float


class PageDetail(BaseModel):
    """One page, all there is."""

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
    """One job of the daemon: its last run, its next, and how far it is."""

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


class WikiStatus(BaseModel):
    """One wiki whose API is asked for change histories, and how far they are read."""

    site: str
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


class AddForm(Form):
    """URLs to mirror, as seeds of a known site or as a new one."""

    urls: Annotated[list[str], Field(min_length=1, max_length=10_000)]
    site: str | None = None
    max_depth: Annotated[int, Field(ge=0, le=10_000)] | None = None
    max_pages: Annotated[int, Field(ge=1)] | None = None
    host_delay_s: Annotated[float, Field(ge=0, le=86_400 * 30)] | None = None
    allow_private: bool = False


class Added(BaseModel):
    """What came of it."""

    site: str
    admitted: int
    refused: list[RefusedUrls]


class TargetForm(Form):
    """What to pause or resume: one site, one host, or everything."""

    site: str | None = None
    host: str | None = None


class RemoveForm(Form):
    """The site to take out of the crawl; its pages stay in the file."""

    site: str


class ShutdownForm(Form):
    """How to stop: after the turns under way, or at once."""

    now: bool = False


class Done(BaseModel):
    """A command that was carried out."""

    done: str


class Reloaded(BaseModel):
    """A reload that was carried out."""

    changed: list[str]
