"""The generated pages of the web mirror, and the banner on mirrored pages.

Templates escape all values. The banner has inline styles, since the styles of the mirrored page
must not affect it, and it must not change that page's layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from crawld.core.display import ago_text, count_text, duration_text, iso_text, size_text, time_text
from crawld.store.frontier.removal import Removal
from crawld.store.mirror.lookup import PageLookup
from crawld.web import assets, security
from crawld.web.address import MirrorAddress, mirror_path, readable_url
from crawld.web.attribution import Attribution
from crawld.web.look import shown_look
from crawld.web.reply import Header, Reply, header

_BANNER_STYLE = (
    "all:initial;display:block;box-sizing:border-box;position:fixed;z-index:2147483647;left:0;"
    "right:0;bottom:0;max-height:40%;overflow:auto;padding:3px 10px;background:#f2f0e6;color:#333;"
    "border-top:1px solid #b8b297;font:13px/1.4 sans-serif;text-align:left;direction:ltr"
)
# The page gets padding for the banner. In print it is part of the flow; low frames have none.
_PAGE_STYLE = (
    "html{padding-bottom:26px!important;scroll-padding-bottom:26px}"
    "@media print{html{padding-bottom:0!important}crawld-banner{position:static!important}}"
    "@media screen and (max-height:150px)"
    "{html{padding-bottom:0!important}crawld-banner{display:none!important}}"
)
_BOLD_STYLE = "all:initial;font:inherit;font-weight:bold"
_LINK_STYLE = "all:initial;font:inherit;color:#004488;text-decoration:underline;cursor:pointer"


_TITLE_CHARACTERS: Final = 300


def brief(text: str) -> str:
    """Return a title or another text of a page, short enough for a heading or a list."""
    return text if len(text) <= _TITLE_CHARACTERS else f"{text[: _TITLE_CHARACTERS - 1]}…"


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
        "ago": ago_text,
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
    """Return the page for a missing copy, with a link to the original."""
    return render_page(
        "missing.html",
        404,
        security.MISSING_PAGE,
        url=address.url,
        selector=address.selector,
        page=page,
        first_at=first_at,
        target=target,
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


def banner(
    url: str,
    at: float,
    attribution: Attribution,
    *,
    gone: bool = False,
    missing_at: float | None = None,
    removal: Removal | None = None,
    left_at: float | None = None,
    leads_to: str | None = None,
    pinned: bool = False,
) -> str:
    """Return the banner of a mirrored page: source, time, revision and license.

    It is fixed at the lower edge of the window, so that it does not move the page.

    Args:
        gone: whether the page was retired.
        missing_at: when it was not found at its site, Unix seconds; None: the last visit found it.
        removal: what the wiki of the page reports about it.
        left_at: when it left the mirrored part of its wiki, Unix seconds.
        leads_to: the page to which it redirects, of which the mirror has no copy.
    """
    parts = [f"Copy of {_link(url, readable_url(url))} made {time_text(at)}"]
    if removal is not None:
        parts.append(_bold(_removal_text(removal)))
        if removal.target_url is not None:
            parts.append(_link(mirror_path(removal.target_url), "its new place"))
    elif gone:
        parts.append(_bold("the original is gone"))
    elif missing_at is not None:
        parts.append(_bold(f"the original was not found {time_text(missing_at)}"))
    else:
        parts += _whereabouts(left_at, leads_to)
    if pinned:
        parts.append("pinned by the operator")
    if attribution.revision_id is not None:
        parts.append(f"revision {attribution.revision_id}")
    if attribution.license is not None and attribution.license_url is not None:
        parts.append(_link(attribution.license_url, attribution.license))
    if attribution.history_url is not None:
        parts.append(_link(attribution.history_url, "authors"))
    parts.append(_link("/versions" + mirror_path(url), "all copies"))
    return (
        f"<crawld-banner role=note style='{_BANNER_STYLE}'><style>{_PAGE_STYLE}</style>"
        f"{' · '.join(parts)}</crawld-banner>"
    )


def _whereabouts(left_at: float | None, leads_to: str | None) -> list[str]:
    """Return what is known of an original that is there, but no longer what the copy shows."""
    if leads_to is not None:
        link = _link(leads_to, readable_url(leads_to))
        return [f"{_bold('the original redirects to')} {link}"]
    if left_at is not None:
        return [_bold(f"no longer in the mirrored part since {time_text(left_at)}")]
    return []


def _bold(text: str) -> str:
    return f"<b style='{_BOLD_STYLE}'>{text}</b>"


def _removal_text(removal: Removal) -> str:
    done = "moved" if removal.kind == "move" else "deleted"
    return f"the original was {done} {time_text(removal.at)}"


def _link(url: str, text: str) -> str:
    shown = text if len(text) <= 120 else text[:119] + "…"
    return f"<a rel=noreferrer style='{_LINK_STYLE}' href=\"{escape(url)}\">{escape(shown)}</a>"
