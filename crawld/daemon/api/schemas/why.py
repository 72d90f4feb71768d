"""The answer to "why was this URL (not) fetched, when will it be, and why then".

Units are in the names; times are Unix seconds. Texts are sentences for people and may change; the
other fields are a stable interface.
"""

from __future__ import annotations

from pydantic import BaseModel

from crawld.core.page import Outcome, PageState
from crawld.core.why.cause import Effect, VisitCause


class WhyPlace(BaseModel):
    """A line of a config file."""

    file: str
    line: int


class WhyCause(BaseModel):
    """A cause that applies.

    `blocks`: the URL is not fetched while it lasts; `delays`: it is fetched later, not before
    `until`; `fetched`: it is fetched, and this says how. `remedy` is the command or config key that
    would change it, empty if none would. `place` is the line of the config that decided.
    """

    cause: VisitCause
    effect: Effect
    text: str
    remedy: str
    until: float | None
    place: WhyPlace | None


class WhySite(BaseModel):
    """The site of the page; of an unknown URL the site that fits best.

    `refusal` is why its scope refuses the URL, null if it admits it; `rule` is the exclude rule
    that refuses it or the include rule that admits it, if there is one.
    """

    name: str
    refusal: str | None
    rule: str | None
    pages_in_all: int
    max_pages: int | None
    max_pages_per_host: int | None
    source: str
    configured: bool
    paused: bool
    place: WhyPlace | None
    shared_with: list[str]


class WhyRobots(BaseModel):
    """What robots.txt says about the URL.

    `verdict` is null if it was never read, `allowed` if that is not known. `line` and `text` are
    the line that decides; null if none matches.
    """

    url: str
    verdict: str | None
    status: int | None
    fetched_at: float | None
    allowed: bool | None
    line: int | None
    text: str | None


class WhyHost(BaseModel):
    """The host: its pages, delay, and what closes it.

    `replica_text` says why it rests as a replica, and which pages do not; empty if it is none.
    """

    host: str
    paused: bool
    pages_in_all: int
    delay_s: float
    base_delay_s: float
    backoff_level: int
    closed_until: float | None
    replica_of: str | None
    replica_status: str | None
    replica_text: str


class WhyHint(BaseModel):
    """A report of a change that no visit has answered yet."""

    source: str
    at: float


class WhyVisit(BaseModel):
    """One visit, with its outcome in words."""

    visited_at: float
    outcome: Outcome
    failure: str | None
    status: int | None
    text: str


class WhyPage(BaseModel):
    """The page, if the URL is one.

    `found_on` is the page that named it, `ahead` the never-visited pages before it (at most 1,000),
    `copy_text` what readers see of it, `change` its change model in words.
    """

    state: PageState
    title: str | None
    depth: int
    seed: bool
    requisite: bool
    discovered_at: float
    found_on: str | None
    visit_count: int
    change_count: int
    failure_count: int
    redirect_url: str | None
    ahead: int
    version_id: int | None
    copy_text: str
    change: str
    hints: list[WhyHint]
    visits: list[WhyVisit]


class WhyPart(BaseModel):
    """The part of a wiki that the site covers: the title of the URL, and why it belongs to it."""

    title: str | None
    reasons: list[str]


class Why(BaseModel):
    """Why a URL was (not) fetched, when it will be, and why then.

    `url` is the canonical form of what was `given`.
    `answer` is the first of `causes` in words: they are in the order in which they decide.
    `next_visit_at` is the earliest time of the next visit, null if none is planned. `live` tells
    whether the running daemon answered; `not_known` lists what only it knows.
    """

    given: str
    url: str
    at: float
    live: bool
    known: bool
    answer: str
    causes: list[WhyCause]
    next_visit_at: float | None
    next_visit_text: str
    site: WhySite | None
    robots: WhyRobots
    host: WhyHost
    page: WhyPage | None
    part: WhyPart | None
    trap: str | None
    not_known: list[str]
