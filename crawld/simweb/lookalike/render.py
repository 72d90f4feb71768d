"""Render the pages of the web of look-alikes as HTML, decorated as their host does it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from html import escape

from crawld.simweb.lookalike.host import LookalikeHost
from crawld.simweb.lookalike.web import LookalikeWeb
from crawld.simweb.page_text import make_sentence
from crawld.simweb.stateless_random import draw

_START = datetime(2026, 1, 5, tzinfo=UTC)
_SENTENCES = 6
_FEWEST_READERS = 1_000


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """What a page answers: a document, or the URL that it redirects to."""

    html: str = ""
    redirect_url: str | None = None


def origin_of(host: LookalikeHost) -> str:
    """Return scheme, name and port of a host."""
    return f"http{'s' * host.https}://{host.name}"


def render_page(
    web: LookalikeWeb, number: int, at: int, day: float, keys: tuple[int, int] | None = None
) -> RenderedPage:
    """Return what a page of a host answers on a day.

    Args:
        number: the host.
        at: index of the page on it.
        day: days since the start.
        keys: its text (`text_at`) and its edit, if they are known; texts of a host are made at
            once.
    """
    host = web.hosts[number]
    pages, path = host.pages, host.pages.paths[at]
    to = int(pages.redirect_to[at])
    if to >= 0 and pages.own_from[at] > day:
        return RenderedPage(redirect_url=f"{origin_of(web.hosts[to])}{path}")
    text, edit = keys or (int(pages.text_at(number, day)[at]), int(pages.edit[at]))
    named = int(pages.canonical_to[at])
    head = ""
    if named >= 0:
        head = f'<link rel="canonical" href="{origin_of(web.hosts[named])}{escape(path)}">'
    base = origin_of(host) if host.decoration.absolute_links else ""
    links = " ".join(
        f'<li><a href="{base}{escape(link)}">{escape(link.rpartition("/")[2])}</a></li>'
        for link in pages.links[at]
    )
    menu = f"<nav><p>{make_sentence(pages.chrome, 1)}</p></nav>" if pages.chrome else ""
    return RenderedPage(
        f"<!DOCTYPE html><html><head><title>{make_sentence(text, 99)}</title>{head}</head><body>"
        f"{menu}<main>{_paragraphs(text, edit)}<ul>{links}</ul></main>"
        f"{_decorations(host, path, day)}</body></html>"
    )


@lru_cache(maxsize=50_000)
def _paragraphs(text: int, edit: int) -> str:
    first = "".join(f"<p>{make_sentence(text, k)}</p>" for k in range(_SENTENCES))
    return first + (f"<p>Account number {edit % 10**8}</p>" if edit else "")


def _decorations(host: LookalikeHost, path: str, day: float) -> str:
    decoration, words = host.decoration, []
    if decoration.date:
        made = _START + timedelta(days=day)
        words.append(f"<p>This page was made on {made:%Y-%m-%d at %H:%M:%S}.</p>")
    if decoration.counter:
        readers = _FEWEST_READERS + draw(host.number, int(day * 86_400)) % 900_000
        words.append(f"<p>You are reader number {readers} of our pages.</p>")
    if decoration.path:
        words.append(f"<p>The address {escape(path)} was asked for.</p>")
    return "".join(words)
