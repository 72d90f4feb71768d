"""Resolves the titles that an operator listed: spelling, redirects, and what is wrong with them.

A title that no page of the wiki can have is found without a request. The wiki decides on the
others, up to 50 per request: which page a title shows, whether it redirects, whether it is missing.

Source: MediaWiki, API:Query (normalized, redirects, missing, invalid and interwiki titles).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from crawld.sources.mediawiki_api import ApiResponse, Parameters
from crawld.sources.mediawiki_members import has_talk
from crawld.sources.mediawiki_rows import flag_of, rows_of, text_of
from crawld.sources.mediawiki_title import TitleRules

MAX_STEPS = 10
"""Redirects that are followed from a title; wikis follow one or two."""

MAX_DETAIL = 200


class TitleOutcome(StrEnum):
    """What a listed title turned out to be."""

    UNRESOLVED = "unresolved"
    PAGE = "page"
    REDIRECT = "redirect"
    MISSING = "missing"
    INVALID = "invalid"
    INTERWIKI = "interwiki"
    DUPLICATE = "duplicate"


class ListedTitle(NamedTuple):
    """A title as the operator wrote it, and what the wiki says about it.

    Attributes:
        written: the operator's text.
        title: the title in the wiki's spelling; None: no page of the wiki can have it.
        outcome: what it is.
        detail: the target of a redirect, the reason of a refusal, or the first text that a
            duplicate repeats; else empty.
    """

    written: str
    title: str | None
    outcome: TitleOutcome
    detail: str = ""

    @property
    def problem(self) -> str | None:
        """Return what the operator should know about the title, None if it is fine."""
        if self.outcome in (TitleOutcome.INVALID, TitleOutcome.INTERWIKI, TitleOutcome.DUPLICATE):
            return f"{self.written!r} is {_PHRASES[self.outcome].format(self.detail)}"
        spelt = "" if self.title == self.written else f" (the wiki spells it {self.title!r})"
        if self.outcome is TitleOutcome.MISSING:
            return f"{self.written!r}{spelt} is missing: the wiki has no such page"
        if self.outcome is TitleOutcome.REDIRECT:
            return f"{self.written!r}{spelt} redirects to {self.detail!r}"
        return f"{self.written!r} is spelt {self.title!r} by the wiki" if spelt else None


_PHRASES: Mapping[TitleOutcome, str] = {
    TitleOutcome.INVALID: "invalid: {}",
    TitleOutcome.INTERWIKI: "a page of another wiki: {}",
    TitleOutcome.DUPLICATE: "listed already, as {!r}",
}


class TitleAnswer(NamedTuple):
    """The wiki's answer about one title.

    Attributes:
        title: the title in its spelling.
        outcome: what it is.
        detail: the reason of a refusal, else empty.
        steps: titles that its redirects lead to, in their order.
        has_talk: whether the page at their end has a discussion.
    """

    title: str
    outcome: TitleOutcome
    detail: str = ""
    steps: tuple[str, ...] = ()
    has_talk: bool = False

    @property
    def end(self) -> str:
        """The title at the end of its redirects."""
        return self.steps[-1] if self.steps else self.title


def sort_titles(written: Iterable[str], rules: TitleRules) -> Iterator[ListedTitle]:
    """Yield the listed titles as far as they are known without a request."""
    first: dict[str, str] = {}
    for text in written:
        if (reason := rules.invalid_reason(text)) is not None:
            elsewhere = rules.interwiki_prefix(text)
            outcome = TitleOutcome.INVALID if elsewhere is None else TitleOutcome.INTERWIKI
            yield ListedTitle(text, None, outcome, reason)
            continue
        title = rules.normalize(text) or text
        if title in first:
            yield ListedTitle(text, title, TitleOutcome.DUPLICATE, first[title])
        else:
            first[title] = text
            yield ListedTitle(text, title, TitleOutcome.UNRESOLVED)


def resolve_query(titles: Iterable[str]) -> Parameters:
    """Return the request that resolves some titles."""
    return {"prop": "info", "inprop": "talkid", "redirects": 1, "titles": "|".join(titles)}


def read_resolved(response: ApiResponse, titles: Iterable[str]) -> dict[str, TitleAnswer]:
    """Return the wiki's answer about each title; titles missing in the response are left out."""
    spelt = _steps(response, "normalized") | _steps(response, "converted")
    redirects = _steps(response, "redirects")
    pages = {text_of(row, "title"): row for row in rows_of(response.query, "pages")}
    elsewhere = {text_of(row, "title") for row in rows_of(response.query, "interwiki")}
    found = {}
    for written in titles:
        title = spelt.get(spelt.get(written, written), spelt.get(written, written))
        steps: list[str] = []
        end = title
        while end in redirects and len(steps) < MAX_STEPS and redirects[end] not in steps:
            end = redirects[end]
            steps.append(end)
        answer = _outcome(title, end, tuple(steps), pages.get(end), end in elsewhere)
        if answer is not None:
            found[written] = answer._replace(has_talk=has_talk(pages.get(end, {})))
    return found


def _outcome(
    title: str,
    end: str,
    steps: tuple[str, ...],
    page: Mapping[str, object] | None,
    is_elsewhere: bool,
) -> TitleAnswer | None:
    if steps:
        # A target outside of the wiki, or one that is missing, has no page: the redirect has.
        inside = page is not None and not flag_of(page, "invalid") and not is_elsewhere
        return TitleAnswer(title, TitleOutcome.REDIRECT, end, steps if inside else steps[:-1])
    if is_elsewhere:
        return TitleAnswer(title, TitleOutcome.INTERWIKI, "the wiki says so")
    if page is None:
        return None
    if flag_of(page, "invalid"):
        reason = text_of(page, "invalidreason") or "the wiki refuses it"
        return TitleAnswer(title, TitleOutcome.INVALID, reason[:MAX_DETAIL])
    if flag_of(page, "special"):
        return TitleAnswer(title, TitleOutcome.INVALID, "a special page")
    # A file of a shared repository is "missing" and yet shown.
    if flag_of(page, "missing") and not flag_of(page, "known"):
        return TitleAnswer(title, TitleOutcome.MISSING)
    return TitleAnswer(title, TitleOutcome.PAGE)


def _steps(response: ApiResponse, key: str) -> dict[str, str]:
    steps = {}
    for row in rows_of(response.query, key):
        start, end = text_of(row, "from"), text_of(row, "to")
        if start and end and start != end:
            steps[start] = end
    return steps
