"""Outcomes, failures, traps, times and change models as words in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crawld.core.change.model import PageModel
from crawld.core.change.pattern import ChangePattern, change_pattern
from crawld.core.display import about_text, duration_text, every_text, plural, time_text
from crawld.core.page import Failure, Outcome
from crawld.core.why.facts import PageFacts, UrlFacts, VisitFacts

FEW_CHANGES: Final = 2
"""Changes below which a model says nothing about their frequency."""

MAX_SPREAD: Final = 30.0
"""Ratio of the ends of the 90 % interval of a rate from which it is too uncertain to be told."""

_TRAPS: Final[Mapping[str, tuple[str, str]]] = {
    "length": ("it is longer than real pages are", "max_url_length"),
    "segments": ("its path is deeper than real ones are", "max_segments"),
    "parameters": ("it has more query parameters than a form", "max_query_parameters"),
    "repetition": ("a part of its path or query repeats itself", "max_repeated_segments"),
    "calendar": ("its date is far from today, as in endless calendars", "max_calendar_run"),
}

_REFUSALS: Final[Mapping[str, str]] = {
    "site_cap": "its site had as many pages as max_pages allows",
    "host_cap": "its host had as many pages as max_pages_per_host allows",
    "requisite_cap": "its site had as many files as max_requisites allows",
    "collision": "another URL has the same key (64 bits)",
    "max_links_per_page": "the page has more links than max_links_per_page",
    "max_hosts_per_page": "the page names too many hosts",
    "max_hosts_per_domain": "too many hosts of its domain are known",
    "growth": "URLs of its form showed nothing new",
    "plugin": "a plug-in refused it",
    "robots": "robots.txt forbade it",
    "exclude": "a rule of exclude matched",
    "include": "no rule of include matched",
    "depth": "it was too many links from a seed (max_depth)",
    "host": "its host did not belong to the site",
    "requisite_host": "its host may not serve images, styles, scripts and fonts",
    "wiki_part": "its title was not in the part of the wiki",
    "wiki_talk": "it is a discussion page of a wiki",
    "wiki_view": "it is a view of a wiki page",
}

_FAILURES: Final[Mapping[str, str]] = {
    Failure.DNS: "the name of its host was not found",
    Failure.ADDRESS_REFUSED: "its host has a private address, which the site does not allow",
    Failure.CONNECT: "its host could not be reached",
    Failure.TLS: "no secure connection (TLS) could be made",
    Failure.TIMEOUT: "the server took too long",
    Failure.PROTOCOL: "the server broke the HTTP protocol",
    Failure.TRUNCATED: "the connection ended before the page did",
    Failure.TOO_LARGE: "the page is larger than allowed",
    Failure.DECODING: "the page could not be decompressed",
    Failure.WRONG_TYPE: "it is of a media type that the site does not store",
    Failure.BAD_REDIRECT: "it redirects to nowhere usable",
    Failure.HTTP_STATUS: "the server answered with an error",
    Failure.ROBOTS: "the page forbids copies of itself (noarchive)",
    Failure.UNAUTHORIZED: "the server refuses access",
    Failure.RATE_LIMITED: "the server asks for fewer requests",
    Failure.UNAVAILABLE: "the server is overloaded or under maintenance",
    Failure.MEMORY: "there was no memory for the page",
    Failure.UNWANTED_FORM: "its answer was not in the wanted form; another profile is tried next",
    Failure.PLUGIN: "a plug-in refused to store it",
}

_REMEDIES: Final[Mapping[str, str]] = {
    Failure.DNS: "check the name; [dns] hosts can fix its address",
    Failure.ADDRESS_REFUSED: "allow_private or allow_private_hosts of the site",
    Failure.TOO_LARGE: "[fetch] max_body_bytes",
    Failure.WRONG_TYPE: "content_types of the site",
    Failure.UNWANTED_FORM: "profiles and wanted of the site",
    Failure.UNAUTHORIZED: "headers_file of the site, if the page needs a password",
    Failure.TIMEOUT: "[fetch] total_s, if the server is just slow",
}

_PATTERNS: Final[Mapping[ChangePattern, str]] = {
    ChangePattern.RANDOM: "at random (Poisson)",
    ChangePattern.BURSTY: "in bursts",
    ChangePattern.REGULAR: "at regular intervals",
}

_OUTCOMES: Final[Mapping[Outcome, str]] = {
    Outcome.CHANGED: "fetched, and a new copy stored",
    Outcome.UNCHANGED: "fetched, nothing had changed",
    Outcome.NOT_MODIFIED: "not modified, says the server",
    Outcome.MOVED: "it redirects",
    Outcome.GONE: "not found",
    Outcome.SOFT_GONE: "the server showed its page for missing pages",
}


def moment(at: float, now: float) -> str:
    """Return a time for people, relative and absolute."""
    span = duration_text(abs(at - now))
    relative = f"in {span}" if at > now else f"{span} ago"
    try:
        return f"{relative} ({time_text(at)})"
    except (ValueError, OverflowError, OSError):
        return relative


def trap_words(trap: str) -> tuple[str, str]:
    """Return why a URL looks like a trap, and the key of [frontier] that limits it, or ""."""
    return _TRAPS.get(trap, (trap.replace("_", " "), ""))


def refusal_words(reason: str) -> str:
    """Return why a link was refused."""
    return _REFUSALS.get(reason) or trap_words(reason)[0]


def failure_words(failure: str | None, detail: str | None) -> str:
    """Return why a visit failed."""
    words = _FAILURES.get(failure or "", (failure or "it failed").replace("_", " "))
    return f"{words} ({detail})" if detail and detail != "noarchive" else words


def failure_remedy(failure: str | None) -> str:
    """Return what the operator can change about a failure, or ""."""
    return _REMEDIES.get(failure or "", "")


def visit_words(visit: VisitFacts) -> str:
    """Return what a visit found."""
    if visit.outcome in (Outcome.FAILED, Outcome.BLOCKED):
        return failure_words(visit.failure, visit.detail)
    words, detail = _OUTCOMES[visit.outcome], visit.detail
    if visit.outcome is Outcome.MOVED and detail:
        return f"{words} to {detail}"
    status = f" (status {visit.status})" if visit.status is not None else ""
    return f"{words}{status}"


def removal_words(facts: UrlFacts, page: PageFacts) -> str:
    """Return what its wiki reports about a page, as a sentence after another; or ""."""
    if page.removal is None or page.removed_at is None:
        return ""
    when = moment(page.removed_at, facts.now)
    if page.removal == "deletion":
        return f" Its wiki reports that it was deleted {when}."
    target = f" to {page.moved_to}" if page.moved_to else ""
    return f" Its wiki reports that it was moved{target} {when}."


def has_evidence(model: PageModel) -> bool:
    """Return whether a page was seen to change often enough to tell how often it changes."""
    low, high = model.interval()
    return model.visits > 0 and _changes(model) >= FEW_CHANGES and high <= MAX_SPREAD * low


def _changes(model: PageModel) -> int:
    return model.changed_visits + round(model.exact_changes)


def change_words(model: PageModel | None) -> str:
    """Return how often a page changes, and from which evidence."""
    if model is None or model.visits == 0:
        return "too early to tell"
    span_s = model.last_visit_at - model.first_at
    evidence = f"{plural(model.visits, 'visit')} over {about_text(span_s)}"
    changes = _changes(model)
    if model.visits == 1 and changes < FEW_CHANGES:
        return "too early to tell: visited once"
    if changes == 0:
        return f"never seen to change, in {evidence}"
    if not has_evidence(model):
        return f"too early to tell: {plural(changes, 'change')} in {evidence}"
    pattern = change_pattern(model)
    told = f", {_PATTERNS[pattern]}" if pattern else ""
    return f"changes about {every_text(1.0 / model.rate)}{told}, from {evidence}"
