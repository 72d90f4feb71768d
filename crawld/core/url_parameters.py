"""Parts of a URL that never select content: tracking parameters and session ids.

Advertising and analytics add the first to links, so that scripts in a browser can report where a
reader came from. Servers add the second to all links of readers without cookies, another for each.
Both make endless names of one page. A parameter is dropped by its name if only tracking uses that
name; a session id only if its value looks random, too: a shop may call a shirt `sid`.

The order of parameters selects content on few servers, which no URL tells: so it stays, except on
sites whose operator says that it means nothing (`sort_query`).

Source of the names: the lists by which Firefox, Brave and ClearURLs clean links, 2026, without the
names that pages use, too (`ref`, `source`, `campaign`).
"""

from __future__ import annotations

import re
from typing import Final

_TRACKING: Final = frozenset(
    (
        *("fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "srsltid", "msclkid"),
        *("yclid", "ysclid", "_openstat", "twclid", "ttclid", "li_fat_id", "igshid", "igsh"),
        *("epik", "rb_clickid", "irclickid", "mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi"),
        *("__hssc", "__hstc", "__hsfp", "hsctatracking", "vero_id", "vero_conv", "oly_anon_id"),
        *("oly_enc_id", "wickedid", "_ga", "_gl", "ml_subscriber", "ml_subscriber_hash"),
        *("pk_campaign", "pk_kwd", "pk_keyword", "pk_source", "pk_medium", "pk_content", "pk_cid"),
        *("piwik_campaign", "piwik_kwd", "piwik_keyword", "__twitter_impression"),
        *("guccounter", "guce_referrer", "guce_referrer_sig"),
    )
)
_TRACKING_PREFIXES: Final = ("utm_", "mtm_")

# Names used only for sessions, by platform: PHP, Java, ColdFusion, shops, generic.
_SESSION: Final = frozenset(
    (
        *("phpsessid", "jsessionid", "cftoken", "oscsid", "zenid", "xtcsid"),
        *("sessionid", "session_id", "sess_id", "sessid", "sid"),
    )
)
_ASP_SESSION: Final = "aspsessionid"
_ID_LIKE: Final = re.compile(r"(?=[^0-9]*[0-9])[0-9A-Za-z,_.!-]{16,}\Z").match
_MD5_LIKE: Final = re.compile(r"[0-9a-fA-F]{32}\Z").match  # the parameter `s` of bulletin boards

_PATH_PARAMETER: Final = re.compile(
    r";(?:jsessionid|phpsessid|sid)=(?=[^0-9/;]*[0-9])[0-9A-Za-z._!-]{16,}(?=[;/]|\Z)",
    re.IGNORECASE,
)
_PATH_SEGMENT: Final = re.compile(r"\(S\([0-9a-z]{24}\)\)\Z", re.IGNORECASE).match


def without_markers(target: str) -> str:
    """Return the path and query of a URL without tracking parameters and session ids.

    >>> without_markers("/a?utm_source=feed&id=3"), without_markers("/a?fbclid=IwAR0")
    ('/a?id=3', '/a')
    >>> without_markers("/shop;jsessionid=0AAB6C8DE415E2E5F307CF334BFCA0C1?p=1")
    '/shop?p=1'
    """
    path, mark, query = target.partition("?")
    if ";" in path or "(" in path:
        path = "/".join(_segments_without_session(path.split("/")))
    if mark:
        query = _query_without_markers(query)
    return f"{path}?{query}" if query else path


def with_sorted_query(url: str) -> str:
    """Return a URL with its parameters in the order of their names.

    Equal names keep their order: many servers read them as a list.

    >>> with_sorted_query("https://a.org/x?b=2&a=9&b=1")
    'https://a.org/x?a=9&b=2&b=1'
    """
    start, mark, query = url.partition("?")
    if "&" not in query:
        return url
    return start + mark + "&".join(sorted(query.split("&"), key=_name))


def _name(pair: str) -> str:
    return pair.partition("=")[0]


def _query_without_markers(query: str) -> str:
    pairs = query.split("&")
    kept = [pair for pair in pairs if not _is_marker(pair)]
    if len(kept) == len(pairs):
        return query
    if "cftoken=" in query.lower() and not any(_is_named(pair, "cftoken") for pair in kept):
        # The number that belongs to the token of a ColdFusion session.
        kept = [pair for pair in kept if not _is_named(pair, "cfid")]
    return "&".join(kept)


def _is_named(pair: str, name: str) -> bool:
    return _name(pair).lower() == name


def _is_marker(pair: str) -> bool:
    name, _, value = pair.partition("=")
    name = name.lower()
    if name in _TRACKING or name.startswith(_TRACKING_PREFIXES):
        return True
    if len(value) < 8:
        return False
    if name == "s":
        return _MD5_LIKE(value) is not None
    if name in _SESSION or (name.startswith(_ASP_SESSION) and name.isalpha()):
        # Tokens of ColdFusion are eight digits.
        return _ID_LIKE(value) is not None or (name == "cftoken" and value.isdigit())
    return False


def _segments_without_session(segments: list[str]) -> list[str]:
    last = len(segments) - 1
    kept = []
    for at, segment in enumerate(segments):
        if at < last and _PATH_SEGMENT(segment):
            continue
        short = _PATH_PARAMETER.sub("", segment) if ";" in segment else segment
        # What is left must not lead up.
        kept.append(segment if short in (".", "..") else short)
    return kept
