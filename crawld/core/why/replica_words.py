"""Why a host rests as a replica, which of its pages do not, and when it is looked at again."""

from __future__ import annotations

from collections.abc import Iterator

from crawld.core.display import count_text, plural, time_text
from crawld.core.why.facts import ReplicaFacts
from crawld.core.why.words import moment

DEFERRED = "deferred"
"""Verdict on a page that was never visited, since its section agrees."""


def replica_words(host: str, replica: ReplicaFacts, now: float) -> str:
    """Return in sentences whether a host rests, how many of its pages do, and why others do not."""
    kept, since = replica.canonical_host, time_text(replica.since)
    reason = f" ({replica.reason})" if replica.reason else ""
    if replica.status == "withdrawn":
        return f"{host} counted as a replica of {kept} until {since}{reason}; it is visited."
    if replica.status == "held":
        waits = {
            "turn": f"{host} is found to be a replica of {kept} and waits for its turn",
            "config": f"{host} is found to be a replica of {kept}, but nothing is done",
        }.get(replica.waits_for or "", f"{host} may be a replica of {kept}; you are asked")
        return f"{waits}{reason}. Until then it is visited."
    if replica.status == "partly":
        text = f"{host} has pages of {kept}, but is no replica of it."
    else:
        text = f"{host} is a replica of {kept}, which is kept{reason}, since {since}."
    return " ".join([text, *_pages_words(replica), *_next_words(replica, now)])


def _pages_words(replica: ReplicaFacts) -> Iterator[str]:
    """Yield how many pages rest, and how many are visited for what reason."""
    pages = replica.pages
    text = f"None of its {plural(pages.in_all, 'page')} rests"
    if pages.resting:
        text = (
            f"{count_text(pages.resting)} of its {plural(pages.in_all, 'page')} rest, since their "
            f"text is that of {replica.canonical_host}"
        )
    if pages.elsewhere:
        text += f", or, of {count_text(pages.elsewhere)}, that of another host with the same pages"
    if pages.deferred:
        text += f"; {count_text(pages.deferred)} of these were never visited, and are once"
    yield f"{text}."
    visited = [
        f"{count_text(count)} {words}"
        for count, words in (
            (pages.differing, "with another text"),
            (pages.repeated, "with one text on many paths, which proves nothing"),
            (pages.only_here, f"of which {replica.canonical_host} has no copy"),
            (pages.undecided, "not decided yet"),
        )
        if count
    ]
    if visited:
        yield f"Visited as before: {', '.join(visited)}."


def _next_words(replica: ReplicaFacts, now: float) -> Iterator[str]:
    if replica.pages.resting:
        at = "with the next search" if replica.look_at <= now else moment(replica.look_at, now)
        yield f"Some of the pages that rest are compared again {at}."


def page_words(replica: ReplicaFacts, now: float) -> str:
    """Return how a page compares with its twin on the canonical host; empty if it was not."""
    page, there = replica.page, replica.canonical_url or f"its twin on {replica.canonical_host}"
    if page is None:
        return ""
    if page.verdict == DEFERRED:
        when = f", {moment(page.visit_at, now)} at the latest" if page.visit_at else ""
        return (
            f"It was never visited: the pages around it have the text of {replica.canonical_host}. "
            f"It is visited once{when}."
        )
    at = time_text(page.compared_at)
    return {
        "agrees": f"Its own text was that of {there} when it was compared, {at}; it may be drawn "
        "to be compared again.",
        "differs": f"Its text was another than that of {there}, {at}, so it is visited.",
        "repeated": f"Its text, compared {at}, stands on many paths of its host, so that it proves "
        "nothing, and it is visited.",
    }.get(page.verdict, f"A later visit of {there} decides whether its text is the same.")
