"""Regular expressions of tags, by the HTML standard's tokenizer.

A quote counts only where a value begins, and `>` or `<` inside quotes are text. All are possessive,
and each token consumes what it has read: they are linear.
"""

from __future__ import annotations

import re
from typing import Final

BLANKS: Final = rb"\t\n\f\r "
"""White space, as part of a character class."""

NAME: Final = rb"[a-zA-Z][^%b/>]*+" % BLANKS
ATTRIBUTE_START: Final = rb"[^%b/>][^%b/>=]*+" % (BLANKS, BLANKS)
ATTRIBUTE: Final = (
    rb"%b(?:[%b]*+=[%b]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^%b>\"'][^%b>]*+)?+)?+"
    % (ATTRIBUTE_START, *(BLANKS,) * 4)
)
"""One attribute. Its value may end with the text."""

ATTRIBUTES: Final = rb"(?:[%b/]++|%b)*+" % (BLANKS, ATTRIBUTE)

ATTRIBUTE_NAME: Final = re.compile(
    ATTRIBUTE.replace(ATTRIBUTE_START, rb"(%b)" % ATTRIBUTE_START, 1)
)
"""An attribute; the group is its name."""

_CLOSED_ATTRIBUTES: Final = (
    rb"(?:[%b/]++|%b(?:[%b]*+=[%b]*+(?:\"[^\"]*+\"|'[^']*+'|[^%b>\"'][^%b>]*+|(?=>))|(?![%b]*+=)))*+"
    % (BLANKS, ATTRIBUTE_START, *(BLANKS,) * 5)
)
# An equals sign after a name has a value: a quote without its end must not be read as a name.

WHOLE_TAG: Final = re.compile(rb"</?+%b%b>" % (NAME, _CLOSED_ATTRIBUTES))
"""A start or end tag that ends before the text does."""

SIMPLE_SVG: Final = re.compile(
    rb"(?:[^<]++|</?+(?:path|g|circle|ellipse|rect|line|polyline|polygon|use|defs|symbol|stop|mask|"
    rb"lineargradient|radialgradient|clippath|pattern|filter|text|tspan|title|animate)"
    rb"(?=[%b/>])%b>)*+</svg[%b]*+>" % (BLANKS, _CLOSED_ATTRIBUTES, BLANKS),
    re.IGNORECASE,
)
"""What follows the tag of an svg element up to its end tag, if no HTML can be within it."""

OPEN_TAG: Final = re.compile(rb"<%b%b" % (NAME, ATTRIBUTES))
"""A start tag up to its end, or to that of the text."""

TOKEN: Final = re.compile(
    rb"<(?:(/?+)(%b)(%b)(?:>|\Z)|!--(?:-?>|.*?(?:--!?>|\Z))|(!\[CDATA\[)|[!?/][^>]*+|)"
    % (NAME, ATTRIBUTES),
    re.DOTALL,
)
"""The next tag (its slash, name and attributes), comment or declaration, or a `<` that is text."""

_SCRIPT_SIGN = re.compile(rb"<!--(?:-?>)?+|-->|<(/?)script(?=[%b/>])" % BLANKS, re.IGNORECASE)
RAW: Final = frozenset(b"script style textarea title xmp iframe noembed noframes".split())
"""Elements whose content is text."""

_RAW_END = {name: re.compile(rb"</%b(?=[%b/>])" % (name, BLANKS), re.IGNORECASE) for name in RAW}


def raw_end(body: bytes, name: bytes, start: int, size: int) -> int:
    """Return the offset of the end tag of a raw text, or the size."""
    end = _script_end(body, start) if name == b"script" else None
    if end is None:
        found = _RAW_END[name].search(body, start, size)
        end = found.start() if found else size
    return end


def _script_end(body: bytes, start: int) -> int | None:
    """Return the offset of the end tag of a script, None if it has none.

    Source: WHATWG HTML Standard 13.2.5.17: within `<!--`, a `<script>` has its own end tag.
    """
    escaped = doubly = False
    for sign in _SCRIPT_SIGN.finditer(body, start):
        slash = sign[1]
        if slash is None:
            escaped, doubly = sign[0] == b"<!--" or (doubly and sign[0][:1] == b"<"), False
        elif slash and not doubly:
            return sign.start()
        else:
            doubly = escaped and not slash
    return None
