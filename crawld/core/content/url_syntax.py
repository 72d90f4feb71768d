"""Locates URLs within values that contain more than a URL: CSS, srcset, refresh.

Each function takes an attribute value with its character references resolved, and returns offsets
into it, so that a URL can be replaced and the rest kept.

Invariants: linear time, ascending offsets, nothing raises. Time is linear by construction: every
pattern is possessive, and each of its tokens, once its first characters are recognized, matches
whatever follows and consumes all that it has read (an unclosed string, comment or parenthesis ends
at the end of the text). No search therefore reads the same text twice.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from itertools import islice

from crawld.core.content.url_kind import UrlKind

MAX_CSS_CHARACTERS = 4 * 2**20
"""Longest style sheet that is read for URLs; the largest on the web have a million characters."""

MAX_SRCSET_CANDIDATES = 1_000
"""Candidates read of one srcset; pages offer twenty at most."""

# Steps of one repetition. `re` takes up to 0.2 µs for each, and holds the interpreter lock for the
# whole call; a longer token is read as several.
_STEPS = "{0,65536}+"
_S = r"\t\n\f\r "
_COMMENT = rf"/\*(?:[^*]++|\*(?!/)){_STEPS}(?:\*/)?+"
# A string, in one of two groups, and whether it is closed.
_QUOTED = rf"(?:\"((?:[^\"\\\n]++|\\.){_STEPS})(\"?+)|'((?:[^'\\\n]++|\\.){_STEPS})('?+))"
_UNQUOTED = rf"((?:[^\"'()\\{_S}]++|\\[0-9a-fA-F]{{1,6}}+[{_S}]?+|\\.){_STEPS})"
_ADDRESS = rf"url\([{_S}]*+(?:{_QUOTED}|{_UNQUOTED})[{_S}]*+(\)?+)"
_FLAGS = re.DOTALL | re.IGNORECASE

# Each pattern matches at every position: first whatever is between two tokens, then a token if one
# follows.
_CSS = re.compile(
    r"(?:[^@/ui\\\"']++|\\.?+|@(?!namespace\b|font-face\b|import)|/(?!\*)|u(?!rl\()|i(?!mage-set\()"
    rf"){_STEPS}(?:{_COMMENT}|@namespace[^;{{}}]*+"
    r"|@font-face[^{};@]*+(?:\{(?P<face>[^}]*+))?+"
    rf"|@import(?:[{_S}]++|{_COMMENT}){_STEPS}(?P<import>{_ADDRESS}|{_QUOTED})?+"
    rf"|image-set\((?P<set>)|(?P<url>{_ADDRESS})|{_QUOTED})?+",
    _FLAGS,
)
_IN_FACE = re.compile(
    rf"(?:[^/u]++|/(?!\*)|u(?!rl\()){_STEPS}(?:{_COMMENT}|(?P<url>{_ADDRESS}))?+", _FLAGS
)
_IN_SET = re.compile(
    rf"(?:[^/ut(){{}};\"']++|/(?!\*)|u(?!rl\()|t(?!ype\()){_STEPS}"
    rf"(?:{_COMMENT}|type\([^)]*+\)?+|(?P<open>\()|(?P<close>\))|(?P<broken>[{{}};])"
    rf"|(?P<url>{_ADDRESS})|(?P<text>{_QUOTED}))?+",
    _FLAGS,
)
_ESCAPE = re.compile(
    r"\\(?:([0-9a-fA-F]{1,6})(?:\r\n|[\t\n\f\r ])?+|(\r\n|[\n\f\r])|(.))", re.DOTALL
)

# Matches at every position; the end of its last part is limited, to keep one match short.
_CANDIDATE = re.compile(
    rf"[{_S},]*+(?:([^{_S},][^{_S}]*+)((?<!,)(?:[^,(]++|\([^)]*+\)?+){{0,64}}+)?+)?+"
)
_REFRESH = re.compile(
    rf"[{_S}]*+(?:[0-9][0-9.]*+|\.[0-9.]*+)?+[{_S}]*+[;,]?+[{_S}]*+(?:url[{_S}]*+=[{_S}]*+)?+"
    r"(?:\"([^\"]*+)|'([^']*+)|([^\"'].*+))",
    re.DOTALL | re.IGNORECASE,
)


def css_url_spans(css: str) -> Iterator[tuple[int, int, UrlKind]]:
    """Yield (start, end, kind) of each URL of a style sheet or attribute, without its quotes.

    A text of more than `MAX_CSS_CHARACTERS` has none.
    """
    position: int | None = 0 if len(css) <= MAX_CSS_CHARACTERS else None
    while position is not None:
        tokens, position = _CSS.finditer(css, position), None
        for match in tokens:
            group = match.lastgroup
            if group == "url" or group == "import":
                kind = UrlKind.IMAGE if group == "url" else UrlKind.STYLE
                if (span := _span(match, group)) is not None:
                    yield *span, kind
            elif group == "face":
                for inner in _IN_FACE.finditer(css, *match.span(group)):
                    if inner.lastgroup and (span := _span(inner, inner.lastgroup)) is not None:
                        yield *span, UrlKind.FONT
            elif group == "set":
                position = yield from _set_spans(css, match.end())
                break


def _set_spans(css: str, position: int) -> Generator[tuple[int, int, UrlKind], None, int]:
    """Yield the URLs of an `image-set(`, in `url()` or not; return the offset after it."""
    depth = 1
    for match in _IN_SET.finditer(css, position):
        group = match.lastgroup
        if group == "url" or group == "text":
            if (span := _span(match, group)) is not None:
                yield *span, UrlKind.IMAGE
        elif group is not None:
            depth += {"open": 1, "close": -1}.get(group, -depth)
            if not depth:
                return match.end()
    return len(css)


def _span(match: re.Match[str], group: str) -> tuple[int, int] | None:
    """Return the span of the URL within a named group, None if a quote or `)` is missing."""
    first = match.re.groupindex[group] + 1
    # A string alone has four groups; `url()` has these, one of a URL without quotes, and its `)`.
    for place in (first, first + 6) if group == "import" else (first,):
        is_address = group == "url" or (group == "import" and place == first)
        if is_address and not match[place + 5]:
            continue
        if match[place + 1] or match[place + 3]:
            return match.span(place if match[place + 1] else place + 2)
        if is_address and match[place + 4]:
            return match.span(place + 4)
    return None


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
    """Yield (start, end) of the first `MAX_SRCSET_CANDIDATES` URLs of a srcset value.

    Source: WHATWG HTML Standard 4.8.4.2.2: a comma ends a candidate only after its URL or after its
    descriptors, outside parentheses.
    """
    for match in islice(_CANDIDATE.finditer(value), MAX_SRCSET_CANDIDATES):
        start, end = match.span(1)
        if start >= 0:
            yield start, start + len(value[start:end].rstrip(","))


def refresh_url_span(value: str) -> tuple[int, int] | None:
    """Return (start, end) of the URL of a refresh directive, None if it only reloads."""
    match = _REFRESH.fullmatch(value) or _REFRESH.match(value)
    if match is None or match.lastindex is None:
        return None
    start, end = match.span(match.lastindex)
    return (start, end) if value[start:end].strip() else None
