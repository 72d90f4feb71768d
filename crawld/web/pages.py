"""The generated pages of the web mirror. Templates escape all values."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from crawld.core.display import ago_text, count_text, duration_text, iso_text, size_text, time_text
from crawld.core.titles import title_of_path
from crawld.core.url import split_url
from crawld.store.frontier.removal import Removal
from crawld.store.mirror.lookup import PageLookup
from crawld.web import assets, security
from crawld.web.address import MirrorAddress, mirror_path, readable_url
from crawld.web.look import shown_look
from crawld.web.reply import Header, Reply, header, split_query

_TITLE_CHARACTERS: Final = 300


def brief(text: str) -> str:
    """Return a title or another text of a page, short enough for a heading or a list."""
    return text if len(text) <= _TITLE_CHARACTERS else f"{text[: _TITLE_CHARACTERS - 1]}…"


def _ago_text(at: float | None, now: float) -> str:
    is_now = at is not None and now - at < 1.0
    return "just now" if is_now else ago_text(at, now)


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(assets.TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "brief": brief,
        "age": duration_text,
        "ago": _ago_text,
        "count": count_text,
        "iso": iso_text,
        "readable": readable_url,
        "size": size_text,
        "time": time_text,
    }
    made.globals |= {
        "mirror_path": mirror_path,
        "mark": assets.MARK,
        "style_path": assets.versioned(assets.STYLE_PATH, assets.STYLE),
        "script_path": assets.versioned(assets.SCRIPT_PATH, assets.SCRIPT),
        "script_integrity": assets.SCRIPT_INTEGRITY,
    }
    return made


_PAGES: Final = _environment()


def render_page(
    template: str, status: int = 200, policy: Sequence[Header] = security.OWN_PAGE, **values: object
) -> Reply:
    """Return a generated page."""
    body = (
        _PAGES.get_template(template).render(values, look=shown_look()).encode("utf-8", "replace")
    )
    lines = [
        header("content-type", "text/html; charset=utf-8"),
        header("cache-control", "no-cache"),
        *policy,
    ]
    return Reply(status, body, lines)


def missing_page(
    address: MirrorAddress,
    page: PageLookup | None = None,
    first_at: float | None = None,
    target: str | None = None,
) -> Reply:
    """Return the page for a missing copy: what adds it, a search for it, its original."""
    return render_page(
        "missing.html",
        404,
        security.MISSING_PAGE,
        url=address.url,
        selector=address.selector,
        page=page,
        first_at=first_at,
        target=target,
        title=_title_of(address.url),
        command=f"crawlctl add {shlex.quote(address.url)}",
        reason_command=f"crawlctl why {shlex.quote(address.url)}",
    )


def _title_of(url: str) -> str:
    """Return the title that a URL suggests, empty: none."""
    path, parameters = split_query(split_url(url).target)
    return " ".join(dict(parameters).get("title", "").replace("_", " ").split()) or title_of_path(
        unquote(path)
    )


def withheld_page(
    address: MirrorAddress,
    removal: Removal | None,
    target: str | None = None,
    *,
    left_at: float | None = None,
) -> Reply:
    """Return the note in place of a copy that is withheld because its original is gone, or left.

    Args:
        target: the page to which the original redirects.
        left_at: when it left the mirrored part of its wiki, Unix seconds.
    """
    return render_page(
        "withheld.html",
        410,
        security.MISSING_PAGE,
        url=address.url,
        removal=removal,
        target=target,
        left_at=left_at,
    )


def error_page(status: int, title: str, text: str) -> Reply:
    """Return an error page."""
    return render_page("error.html", status, title=title, text=text)


def too_large(what: str) -> Reply:
    """Return the page in place of copies for which there is no memory; `what` begins a sentence."""
    text = f"{what} too large for the memory of this daemon ([daemon] max_memory)."
    return error_page(503, "Too large", f"{text} The command crawld serve shows all copies.")


def not_an_address() -> Reply:
    """Return the page for a target that is not the address of a page."""
    return error_page(404, "No such page", "This is not a valid page address.")
