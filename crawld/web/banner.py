"""The line on mirrored pages: source, time, state, license and copies.

It has inline styles, since the styles of the mirrored page must not affect it, and it must not
change that page's layout. It is fixed at the lower edge of the window; on a phone it takes one row,
which scrolls.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from crawld.core.display import time_text
from crawld.store.frontier.removal import Removal
from crawld.web.address import mirror_path, readable_url
from crawld.web.attribution import Attribution

_BANNER_STYLE = (
    "all:initial;display:block;box-sizing:border-box;position:fixed;z-index:2147483647;left:0;"
    "right:0;bottom:0;max-height:40%;overflow:auto;padding:4px 12px;background:#f6f7f8;"
    "color:#1c2126;border-top:1px solid #87919c;font:13px/1.5 system-ui,sans-serif;"
    "text-align:left;direction:ltr"
)
# The page gets padding for the banner. In print it is part of the flow; low frames have none.
_PAGE_STYLE = (
    "html{padding-bottom:29px!important;scroll-padding-bottom:29px}"
    "@media print{html{padding-bottom:0!important}crawld-banner{position:static!important}}"
    "@media screen and (max-width:600px){crawld-banner{white-space:nowrap!important;"
    "overflow-y:hidden!important;scrollbar-width:thin!important}"
    "crawld-url{display:inline-block!important;max-width:9em!important;overflow:hidden!important;"
    "text-overflow:ellipsis!important;vertical-align:bottom!important}}"
    "@media screen and (max-height:150px)"
    "{html{padding-bottom:0!important}crawld-banner{display:none!important}}"
)
_BOLD_STYLE = "all:initial;font:inherit;font-weight:bold;color:#a3211a;white-space:inherit"
_LINK_STYLE = (
    "all:initial;font:inherit;color:#0a4f9e;text-decoration:underline;cursor:pointer;"
    "white-space:inherit"
)
_URL_STYLE = "all:initial;font:inherit;white-space:inherit"


def banner(
    url: str,
    at: float,
    attribution: Attribution,
    *,
    gone: bool = False,
    missing_since: str | None = None,
    removal: Removal | None = None,
    left_at: float | None = None,
    leads_to: str | None = None,
    pinned: bool = False,
    held_id: int | None = None,
    superseded: bool = False,
    truncated: bool = False,
) -> str:
    """Return the line of a mirrored page: source, time, what the copy is, revision and license.

    Args:
        gone: whether the page was retired.
        missing_since: how long ago it was not found at its site; None: the last visit found it.
        removal: what the wiki of the page reports about it.
        left_at: when it left the mirrored part of its wiki, Unix seconds.
        leads_to: the page to which it redirects, of which the mirror has no copy.
        pinned: whether the operator chose this copy.
        held_id: the newest copy, in whose place this one is shown; None: it is not.
        superseded: whether a reader chose this copy and there is a newer one.
        truncated: whether it is only the start of the page.
    """
    source = f"<crawld-url style='{_URL_STYLE}'>{_link(url, readable_url(url))}</crawld-url>"
    parts = [f"Copy of {source} made {time_text(at)}"]
    parts += _copy_notes(url, superseded=superseded, truncated=truncated)
    if removal is not None:
        parts.append(_bold(_removal_text(removal)))
        if removal.target_url is not None:
            parts.append(_link(mirror_path(removal.target_url), "its new place"))
    elif gone:
        parts.append(_bold("the original is gone"))
    elif missing_since is not None:
        parts.append(_bold(f"the original was not found when last looked at, {missing_since}"))
    else:
        parts += _whereabouts(left_at, leads_to)
    if pinned or held_id is not None:
        held = "pinned by the operator" if pinned else "held: a newer copy has not settled yet"
        newest = "" if held_id is None else f", {_link(mirror_path(url, f'v{held_id}'), 'newest')}"
        parts.append(_bold(held) + newest)
    if attribution.revision_id is not None:
        parts.append(f"revision {attribution.revision_id}")
    if attribution.license is not None and attribution.license_url is not None:
        parts.append(_link(attribution.license_url, attribution.license))
    if attribution.history_url is not None:
        parts.append(_link(attribution.history_url, "authors"))
    parts.append(_link("/versions" + mirror_path(url), "all copies"))
    return (
        f"<crawld-banner role=complementary aria-label='About this copy' style='{_BANNER_STYLE}'>"
        f"<style>{_PAGE_STYLE}</style>"
        f"{' · '.join(parts)}</crawld-banner>"
    )


def _copy_notes(url: str, *, superseded: bool, truncated: bool) -> Iterator[str]:
    """Yield in what the copy differs from the page as it was last fetched."""
    if superseded:
        yield f"{_bold('an older copy')}, {_link(mirror_path(url), 'newest')}"
    if truncated:
        yield _bold("only the start of the page, which is larger than the mirror keeps")


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
