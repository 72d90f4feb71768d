"""An HTML tokenizer that locates start tags, attributes and raw text.

Links are rewritten in place, and every other byte of the page stays as received. The page is
therefore not parsed into a tree and serialized. This is the tokenizer of the WHATWG HTML Standard
(section 13.2.5), reduced to the rules for where an attribute value begins and ends. Comments,
declarations, and the text of scripts, titles and text areas are skipped.

Text has one character a byte (any charset that extends ASCII, read as Latin-1) or is decoded; the
tokens look the same in both.

Invariants: time is linear in the length of any text (possessive patterns; an unclosed element ends
the search); offsets ascend.
"""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterator
from functools import lru_cache
from html.entities import html5
from typing import NamedTuple

from crawld.core.content.media import decode_as

_S = r"\t\n\f\r "
_ATTRIBUTES = (
    rf"(?:[{_S}/]++"
    rf"|[^{_S}/>][^{_S}/>=]*+"
    rf"(?:[{_S}]*+=[{_S}]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^{_S}>\"'][^{_S}>]*+)?+)?+"
    r")*+"
)
# Most of the relevant tags are links; in this spelling only their href is relevant.
_RELEVANT = "href|ping|integrity|crossorigin|style|fill|stroke|filter|mask|clip-path|cursor|marker"
_OTHERS = rf"(?:[{_S}]++(?!{_RELEVANT})[a-z0-9-]++=\"[^\"]*+\")*+"
_USUAL_LINK = rf"<a{_OTHERS}(?:[{_S}]++href=\"([^\"]*+)\"{_OTHERS})?+>"
_TOKEN = re.compile(
    rf"{_USUAL_LINK}"
    rf"|<(?:([a-zA-Z][^{_S}/>]*+)({_ATTRIBUTES})(>|\Z)"
    rf"|/([a-zA-Z][^{_S}/>]*+){_ATTRIBUTES}(?:>|\Z)"
    r"|!--(?:-?>|.*?(?:--!?>|\Z))"
    r"|[!?/][^>]*+)",
    re.DOTALL,
)
_LINK, _START, _END = 1, 4, 5
"""The last matched group of a link in its usual spelling, a start tag, and an end tag."""

# Most of a page is skipped within one match: text, end tags, and these tags with attributes in
# their usual spelling. A tag with a parenthesis may contain CSS and is not skipped.
_USUAL = (
    *("li", "span", "p", "i", "b", "div", "td", "tr", "ul", "sup", "em", "code", "br", "h2", "h3"),
    *("h4", "h5", "h6", "h1", "dd", "dt", "dl", "ol", "th", "cite", "strong", "small", "section"),
    *("abbr", "bdi", "sub", "pre", "wbr", "tbody", "thead", "table", "figure", "figcaption", "nav"),
    *("label", "q", "blockquote", "article", "header", "footer", "main", "aside", "hr", "a"),
)
_USUAL_ATTRIBUTES = rf"(?:[{_S}]++[a-z0-9:_-]++=\"[^\"(]*+\")*+[{_S}]*+/?+>"
_ATTRIBUTE = re.compile(
    rf"([^{_S}/>][^{_S}/>=]*+)"
    rf"(?:[{_S}]*+=[{_S}]*+(?:\"([^\"]*+)\"|'([^']*+)'|([^{_S}>\"'][^{_S}>]*+))?+)?+"
)

_RAW_TEXTS = ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"]
_RAW_TEXT = {
    "plaintext": re.compile(r"\Z"),
    **{name: re.compile(rf"</{name}(?=[{_S}/>])", re.IGNORECASE) for name in _RAW_TEXTS},
}
_FOREIGN = frozenset({"svg", "math"})
_MODE_TAGS = _FOREIGN | _RAW_TEXT.keys()
"""Tags after which the text is read differently."""

_BREAKS_OUT = frozenset(
    {
        *("b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em"),
        *("embed", "h1", "h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing"),
        *("menu", "meta", "nobr", "ol", "p", "pre", "ruby", "s", "small", "span", "strong"),
        *("strike", "sub", "sup", "table", "tt", "u", "ul", "var"),
    }
)
"""Tags that end an svg or math element left open (section 13.2.6.5)."""

_MAX_REFERENCE_CHARACTERS = 1_000
"""Longest numeric character reference that is computed; `&#x10ffff;` has 10 characters."""

_CHARACTER = re.compile(r"&(?:#(?:[xX][0-9a-fA-F]++|[0-9]++);?+|([a-zA-Z][a-zA-Z0-9]*+)(;?+))(=?)")


class Attribute(NamedTuple):
    """The location of an attribute.

    Attributes:
        start: offset of its name.
        end: offset after it, its closing quote included.
        value_start: offset of its value, after the quote; `end` if it has none.
        value_end: offset after the value.
        quote: `"`, `'` or nothing.
    """

    start: int
    end: int
    value_start: int
    value_end: int
    quote: str


class StartTag(NamedTuple):
    """A start tag.

    Attributes:
        name: in lower case.
        attributes_start: offset after the name.
        attributes_end: offset of its `>`.
        text_end: end of its raw text (script, style, title …); None if it contains markup.
    """

    name: str
    attributes_start: int
    attributes_end: int
    text_end: int | None


HrefSpan = tuple[int, int]
"""Start and end of a double-quoted href of an `a` element without other relevant attributes."""


def start_tags(
    text: str, *, xml: bool = False, only: frozenset[str] | None = None
) -> Iterator[StartTag | HrefSpan]:
    """Yield the start tags of a page, in order; for a link in its usual spelling only its href.

    Args:
        xml: whether it is XML (XHTML, SVG), where `<script/>` is empty.
        only: the relevant names, besides tags with a parenthesis; None: all.
    """
    position: int | None = 0
    # Depth of svg and math elements, whose scripts, titles and text areas contain markup. So may
    # their style sheets by the standard, but none in practice do.
    depth = outside = int(xml)
    skipping = _TOKEN if only is None else _skipping_pattern(only)
    while position is not None:
        inside = depth > outside
        tokens, position = (_TOKEN if inside else skipping).finditer(text, position), None
        for match in tokens:
            token = match.lastindex
            if token == _LINK:
                yield match.span(_LINK)
                continue
            if token == _START:
                name, raw_text_end = match[2].lower(), None
                if inside or name in _MODE_TAGS:
                    depth, raw_text_end = _after_start(match, name, depth, outside)
                if _is_relevant(match, name, only):
                    yield StartTag(name, *match.span(3), raw_text_end)
                position = raw_text_end
            elif token == _END and inside:
                depth = _depth_after_end(match[_END], depth, outside)
            if position is None and (depth > outside) is not inside:
                position = match.end()
            if position is not None:
                break


def _is_relevant(match: re.Match[str], name: str, only: frozenset[str] | None) -> bool:
    """Return whether to yield a start tag: it is closed, and its name is relevant."""
    return match[_START] != "" and (only is None or name in only or "(" in match[3])


def _after_start(
    match: re.Match[str], name: str, depth: int, outside: int
) -> tuple[int, int | None]:
    """Return the depth after a start tag, and the end of its raw text if it has any."""
    empty, raw_text_end = match[3].endswith("/"), None
    if name in _RAW_TEXT and (not depth or (name == "style" and not empty)):
        raw_text_end = _raw_text_end(match.string, name, match.end())
    return _depth_after_start(name, depth, outside, empty=empty), raw_text_end


@lru_cache(maxsize=8)
def _skipping_pattern(only: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern that finds tokens as `_TOKEN` does, but skips usual tags not in `only`.

    It matches at every start, if necessary at the end of the text, so that no search restarts.
    """
    names = "|".join(name for name in _USUAL if name not in only)
    usual = rf"[^<]++|</[a-zA-Z][a-zA-Z0-9]*+>|<(?:{names}){_USUAL_ATTRIBUTES}|<(?![a-zA-Z/!?])"
    return re.compile(rf"(?:{usual})*+(?:{_TOKEN.pattern}|\Z)", re.DOTALL)


def _depth_after_start(name: str, depth: int, outside: int, *, empty: bool) -> int:
    if name in _FOREIGN:
        return depth + (not empty)
    return outside if name in _BREAKS_OUT and depth > outside else depth


def _depth_after_end(name: str | None, depth: int, outside: int) -> int:
    name = name.lower() if name else ""
    if name in ("p", "br"):
        return outside
    return depth - 1 if name in _FOREIGN else depth


def _raw_text_end(text: str, name: str, start: int) -> int:
    """Return the end of an element's raw text: its end tag or the end of the page."""
    end = _RAW_TEXT[name].search(text, start)
    return end.start() if end else len(text)


def attributes_of(
    text: str, tag: StartTag, only: frozenset[str] | None = None
) -> dict[str, Attribute]:
    """Return the attributes of a tag by lower-case name; the first one if a name repeats.

    With `only`, those of these names.
    """
    found: dict[str, Attribute] = {}
    for match in _ATTRIBUTE.finditer(text, tag.attributes_start, tag.attributes_end):
        name = match[1].lower()
        if (only is not None and name not in only) or name in found:
            continue
        group = match.lastindex or 1
        if group == 1:
            place = Attribute(match.start(), match.end(), match.end(), match.end(), "")
        else:
            quote = ("", "", '"', "'", "")[group]
            place = Attribute(match.start(), match.end(), *match.span(group), quote)
        found[name] = place
    return found


def unescape(value: str) -> str:
    """Return an attribute value with its character references resolved.

    In an attribute, a name without its semicolon is not a reference if `=`, a letter or a digit
    follows, so that `?a=1&copy=2` keeps its parameter (WHATWG HTML Standard 13.2.5.73).

    >>> unescape("?a&amp;b&copy=1&lt&notit;&#38;")
    '?a&b&copy=1<&notit;&'
    """
    if "\0" in value:
        value = value.replace("\0", "\ufffd")
    return _CHARACTER.sub(_character, value) if "&" in value else value


def _character(match: re.Match[str]) -> str:
    name, semicolon, sign = match.groups()
    if name is None:
        if match.end() - match.start() > _MAX_REFERENCE_CHARACTERS:
            return "\ufffd" + sign  # beyond Unicode; int() refuses 4,300 digits
        return html.unescape(match[0].removesuffix("=")) + sign
    if semicolon or not sign:
        return html5.get(name + semicolon, match[0].removesuffix("=")) + sign
    return match[0]


def escape(value: str, quote: str) -> str:
    """Return a value escaped for the given quotes; without quotes, with new ones added."""
    value = value.replace("&", "&amp;").replace("<", "&lt;")
    if quote == "'":
        return value.replace("'", "&#39;")
    value = value.replace('"', "&quot;")
    return value if quote else f'"{value}"'


# Charsets in which a byte below 0x80 may be part of another character, or mean another one.
_NOT_BYTEWISE = re.compile(r"utf-?(?:16|32|7)|iso-?2022|hz|cp9(?:32|49|50)|shift|big5|gb|johab")


class MarkupText(NamedTuple):
    """The text of a page or style sheet, and how its values are read and written.

    Attributes:
        text: the text; one character a byte if `charset` is set.
        charset: charset of its bytes; None: the text is decoded.
    """

    text: str
    charset: str | None

    def read(self, raw: str) -> str:
        """Return a part of the text as characters."""
        if self.charset is None or raw.isascii():
            return raw
        return raw.encode("latin-1").decode(self.charset, "replace")

    def write(self, value: str, errors: str = "xmlcharrefreplace") -> str:
        """Return characters as a part of the text."""
        if self.charset is None or value.isascii():
            return value
        return value.encode(self.charset, errors).decode("latin-1")

    def body(self, text: str) -> bytes:
        """Return a text edited from this one as bytes: in its charset, else in UTF-8 with a BOM."""
        if self.charset is not None:
            return text.encode("latin-1")
        return codecs.BOM_UTF8 + text.encode("utf-8", "replace")


def is_bytewise(charset: str) -> bool:
    """Return whether markup can be edited in the bytes of a charset (a Python codec)."""
    return _NOT_BYTEWISE.match(charset) is None


def source_of(body: bytes, charset: str) -> MarkupText:
    """Return the text of a body, read with a Python codec (from `media.decode`)."""
    if is_bytewise(charset):
        return MarkupText(body.decode("latin-1"), charset)
    return MarkupText(decode_as(body, charset).removeprefix("\ufeff"), None)
