"""`crawlctl why`: why a URL was, or was not, fetched, and when it will be."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from crawld.cli.console import console
from crawld.cli.output import clean
from crawld.cli.session import Session
from crawld.core.display import ago_text, duration_text, plural, time_text
from crawld.core.why.cause import Effect

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.why import Why, WhyCause, WhyPage, WhyPlace, WhyRobots, WhySite

WIDTH = 80
"""Columns of the text, of a wider terminal too."""

LABEL_COLUMNS = 12


def why(session: Session, url: Annotated[str, typer.Argument(metavar="URL")]) -> None:
    """Tell why a URL was (not) fetched, when it will be, and what would change that."""
    session.show(session.client.get("/why", url=url), partial(why_text, width=_width()))


def _width() -> int:
    return min(console().width, WIDTH) if sys.stdout.isatty() else WIDTH


def why_text(answer: Why, width: int = WIDTH) -> str:
    """Return an answer as text; only words longer than a line, such as URLs, exceed the width."""
    first, *others = answer.causes
    lines = [clean(answer.url)]
    if answer.given != answer.url:
        lines += _wrapped(f"(the canonical form of {answer.given})", width)
    lines += ["", *_wrapped(answer.answer, width)]
    lines += _facts(_under(first), width, indent="  ")
    lines += ["", *_facts(_rows(answer), width)]
    if others:
        lines += ["", "Also:"]
        for each in others:
            lines += _wrapped(f"- {each.text}", width, "  ")
            lines += _facts(_under(each), width, indent="    ")
    if answer.not_known:
        lines += ["", "Not known from the file alone; with a running daemon: crawlctl why URL"]
        lines += [line for each in answer.not_known for line in _wrapped(f"- {each}", width, "  ")]
    return "\n".join(lines)


def _under(cause: WhyCause) -> Iterator[tuple[str, str]]:
    """Yield what belongs to a cause: its line of the config, and its remedy."""
    if cause.place is not None:
        yield "by", _place_text(cause.place)
    if cause.remedy:
        yield "to change" if cause.effect != Effect.FETCHED else "see", cause.remedy


def _rows(answer: Why) -> Iterator[tuple[str, str]]:
    yield "next visit", answer.next_visit_text
    site = answer.site
    if site is not None:
        place = f", {_place_text(site.place)}" if site.place is not None else ""
        state = ", paused" if site.paused else "" if site.configured else ", not configured"
        shared = f"; also named by {', '.join(site.shared_with)}" if site.shared_with else ""
        fits = "" if answer.known else " (fits best)"
        yield "site", f"{site.name}{fits}{state}{place}{shared}"
        yield "scope", _scope_text(site)
    if answer.part is not None and answer.part.title is not None:
        reasons = "; ".join(answer.part.reasons) or "not in the part of the wiki"
        yield "wiki title", f"{answer.part.title}: {reasons}"
    yield "robots.txt", _robots_text(answer.robots, answer.at)
    if answer.host.pages_in_all or answer.known:
        yield "host", _host_text(answer)
    if answer.host.replica_text:
        yield "replica", answer.host.replica_text
    if answer.page is not None:
        yield from _page_rows(answer.page, answer.at)


def _scope_text(site: WhySite) -> str:
    if site.refusal is not None:
        rule = f' by "{site.rule}"' if site.rule is not None else ""
        return f"refused ({site.refusal.replace('_', ' ')}){rule}"
    rule = f' by "{site.rule}"' if site.rule is not None else ""
    limit = f" of at most {site.max_pages:,}" if site.max_pages is not None else ""
    return f"admitted{rule}; the site has {plural(site.pages_in_all, 'page')}{limit}"


def _robots_text(robots: WhyRobots, now: float) -> str:
    if robots.verdict is None:
        return "not read yet"
    when = f"read {ago_text(robots.fetched_at, now)}"
    if robots.verdict == "closed":
        return f"could not be read, {when}"
    if robots.verdict == "open":
        return f"there is none, {when}"
    if robots.allowed is None:
        return f"not judged, {when}"
    word = "allows" if robots.allowed else "forbids"
    line = f' by line {robots.line}, "{robots.text}"' if robots.line is not None else ""
    return f"{word} it{line}, {when}"


def _host_text(answer: Why) -> str:
    host = answer.host
    rate = f"one request every {duration_text(host.delay_s)}" if host.delay_s else "no delay"
    text = f"{host.host}: {plural(host.pages_in_all, 'page')}, {rate}"
    return text + ("; paused" if host.paused else "")


def _page_rows(page: WhyPage, now: float) -> Iterator[tuple[str, str]]:
    kind = "image, style, script or font of pages, " if page.requisite else ""
    place = "a seed" if page.seed else f"{plural(page.depth, 'link')} from a seed"
    on = f" on {page.found_on}" if page.found_on is not None else ""
    yield "page", f"{kind}{place}, found {_day(page.discovered_at)}{on}"
    if page.title:
        yield "title", page.title[:200]
    yield "copy", page.copy_text
    if page.change:
        yield "changes", page.change
    if page.visit_count:
        copies = "1 new copy" if page.change_count == 1 else f"{page.change_count:,} new copies"
        yield "visits", f"{plural(page.visit_count, 'visit')}, {copies}; the last:"
    for visit in page.visits:
        yield "", f"{ago_text(visit.visited_at, now)}: {visit.text}"


def _day(at: float) -> str:
    try:
        return time_text(at)
    except (ValueError, OverflowError, OSError):
        return f"at {at:g}"


def _place_text(place: WhyPlace) -> str:
    return f"{place.file}:{place.line}"


def _facts(rows: Iterable[tuple[str, str]], width: int, indent: str = "") -> list[str]:
    """Return labels and values, the values wrapped in their column."""
    lines = []
    for label, value in rows:
        columns = LABEL_COLUMNS + len(indent)
        start = f"{indent}{label:<{LABEL_COLUMNS}}"
        lines += _wrapped(value, width, " " * columns, start)
    return lines


def _wrapped(text: str, width: int, indent: str = "", start: str = "") -> list[str]:
    return textwrap.wrap(
        clean(text),
        width,
        initial_indent=start,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


COMMANDS = (why,)
