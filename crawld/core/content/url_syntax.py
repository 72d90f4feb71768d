"""Locates URLs within values that contain more than a URL: CSS, srcset, refresh.

Each function takes an attribute value with its character references resolved, and returns offsets
into it, so that a URL can be replaced and the rest kept.

Invariants: linear time (possessive patterns), ascending offsets, nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from crawld.core.content.url_kind import UrlKind

_S = r"\t\n\f\r "
_QUOTED = r"\"((?:[^\"\\\n]++|\\.)*+)\"|'((?:[^'\\\n]++|\\.)*+)'"
_HEX = rf"\\[0-9a-fA-F]{{1,6}}+[{_S}]?+"
_ADDRESS = rf"url\([{_S}]*+(?:{_QUOTED}|((?:[^\"'()\\{_S}]++|{_HEX}|\\.)++))[{_S}]*+\)"
_GAP = rf"(?:[{_S}]|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/)*+"
_CSS = re.compile(
    r"/\*.*?(?:\*/|\Z)"
    r"|@namespace\b[^;{}]*+"
    r"|@font-face\b[^{};@]*+\{(?P<face>[^}]*+)"
    rf"|@import{_GAP}(?P<import>{_ADDRESS}|{_QUOTED})"
    r"|image-set\((?P<set>(?:[^()\"']++|\"[^\"\n]*+\"|'[^'\n]*+'"
    r"|\((?:[^()\"']++|\"[^\"\n]*+\"|'[^'\n]*+')*+\))*+)\)"
    rf"|(?P<url>{_ADDRESS})"
    rf"|\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'",
    re.DOTALL | re.IGNORECASE,
)
_IN_FACE = re.compile(rf"/\*.*?(?:\*/|\Z)|{_ADDRESS}", re.DOTALL | re.IGNORECASE)
_IN_SET = re.compile(rf"type\([^)]*+\)?+|{_ADDRESS}|{_QUOTED}", re.DOTALL | re.IGNORECASE)
_IN_IMPORT = re.compile(rf"{_ADDRESS}|{_QUOTED}", re.DOTALL | re.IGNORECASE)
_ESCAPE = re.compile(
    r"\\(?:([0-9a-fA-F]{1,6})(?:\r\n|[\t\n\f\r ])?+|(\r\n|[\n\f\r])|(.))", re.DOTALL
)

_CANDIDATE = re.compile(rf"[{_S},]*+([^{_S},][^{_S}]*+)((?<!,)(?:[^,(]++|\([^)]*+\)?+)*+)?+")
_REFRESH = re.compile(
    rf"[{_S}]*+(?:[0-9][0-9.]*+|\.[0-9.]*+)?+[{_S}]*+[;,]?+[{_S}]*+(?:url[{_S}]*+=[{_S}]*+)?+"
    r"(?:\"([^\"]*+)|'([^']*+)|([^\"'].*+))",
    re.DOTALL | re.IGNORECASE,
)


def css_url_spans(css: str) -> Iterator[tuple[int, int, UrlKind]]:
    """Yield (start, end, kind) of each URL of a style sheet or attribute, without its quotes."""
    for match in _CSS.finditer(css):
        group = match.lastgroup
        if group == "url":
            yield *_span(match), UrlKind.IMAGE
        elif group is not None:
            pattern, kind = _INSIDE[group]
            for inner in pattern.finditer(css, *match.span(group)):
                if inner.lastindex is not None:
                    yield *_span(inner), kind


_INSIDE = {
    "face": (_IN_FACE, UrlKind.FONT),
    "import": (_IN_IMPORT, UrlKind.STYLE),
    "set": (_IN_SET, UrlKind.IMAGE),
}


def _span(match: re.Match[str]) -> tuple[int, int]:
    # One of the groups for the kinds of quotes has matched; the named group around them comes
    # first.
    index = next(i for i in range(match.re.groups, 0, -1) if match[i] is not None)
    return match.span(index)


def css_unescape(value: str) -> str:
    r"""Return a CSS string or URL with its escapes resolved.

    >>> css_unescape(r"a\26 b\)")
    'a&b)'
    """
    return _ESCAPE.sub(_escaped, value) if "\\" in value else value


def _escaped(match: re.Match[str]) -> str:
    code, line_end, character = match.groups()
    if code is None:
        return "" if line_end else str(character)
    number = int(code, 16)
    return "\ufffd" if not number or number > 0x10FFFF or 0xD800 <= number < 0xE000 else chr(number)


def srcset_url_spans(value: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each URL of a srcset value.

    Source: WHATWG HTML Standard 4.8.4.2.2: a comma ends a candidate only after its URL or after its
    descriptors, outside parentheses.
    """
    for match in _CANDIDATE.finditer(value):
        start, end = match.span(1)
        yield start, start + len(value[start:end].rstrip(","))


def refresh_url_span(value: str) -> tuple[int, int] | None:
    """Return (start, end) of the URL of a refresh directive, None if it only reloads."""
    match = _REFRESH.fullmatch(value) or _REFRESH.match(value)
    if match is None or match.lastindex is None:
        return None
    start, end = match.span(match.lastindex)
    return (start, end) if value[start:end].strip() else None
