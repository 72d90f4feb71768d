"""Cuts serialized HTML at its tags, in one pass.

Lexbor serializes with every tag closed, every attribute quoted, and `<` and `>` escaped in text.
Every `<` is therefore a tag, and `str.split` finds them all. Only the tags that open or close a
block end a run of text. A loop over the pieces costs less than vectors of numpy did: half as much
for a page of 500 tags, a quarter more for one of 3,000 in 50 KB.

In a run of text the tags of inline elements are removed, cells and line breaks are written as text,
and the targets of links and images are enclosed in marks (`targets.py`).

Left out with all their content: comments, elements with raw content, `_SKIPPED`, and elements
hidden by `hidden` or an inline style.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from crawld.core.content.targets import image_target, link_target, without_marks

_BLOCKS = (
    *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details"),
    *("dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "legend", "li", "main", "menu"),
    *("nav", "ol", "optgroup", "option", "p", "pre", "search", "section", "select", "summary"),
    *("table", "tbody", "tfoot", "thead", "tr", "ul"),
)
_SKIPPED = ("template", "svg", "object", "canvas", "audio", "video", "datalist", "map")
# Their content is serialized unescaped.
_RAW_ELEMENTS = ("script", "style", "noscript", "iframe", "noembed", "noframes")
_INLINE = (
    *("abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em"),
    *("font", "i", "ins", "kbd", "label", "mark", "nobr", "q", "s", "samp", "small", "span"),
    *("strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
)
_VOID = frozenset({"img", "input", "br", "hr", "wbr", "embed", "source", "track", "col"})

# Plain numbers: a page has a thousand tags.
_NONE: Final = 0
_OPEN: Final = 1
_CLOSE: Final = 2
_LINK: Final = 3
_IMAGE: Final = 4
_CELL: Final = 5
_BREAK: Final = 6
_SKIP: Final = 7
_RAW: Final = 8

_ROLES: Final[dict[str, int]] = {
    **dict.fromkeys(_INLINE, _NONE),
    **dict.fromkeys(_BLOCKS, _OPEN),
    **dict.fromkeys(_SKIPPED, _SKIP),
    **dict.fromkeys(_RAW_ELEMENTS, _RAW),
    **dict.fromkeys(("td", "th"), _CELL),
    **dict.fromkeys(("br", "hr"), _BREAK),
    "a": _LINK,
    "img": _IMAGE,
}
_ROLES.update(
    {f"/{name}": _CLOSE if role == _OPEN else _NONE for name, role in tuple(_ROLES.items())}
)

_HIDDEN = re.compile(
    r' hidden="| style="[^"]*(?:display\s*:\s*none|visibility\s*:\s*hidden)', re.IGNORECASE
)
_SOURCE = re.compile(r' src="([^"]*)"')
_HREF = re.compile(r' href="([^"]*)"')

_COMMENT: Final = "!--"
_COMMENT_END: Final = "-->"


def block_runs(markup: str) -> Iterator[tuple[str, str | None]]:
    """Cut the result of `LexborNode.html` into runs of text.

    Any other text gives an unspecified result, in linear time.

    Yields:
        A run, in which entities are kept, and the tag that opens a block behind it, name and
        attributes; None: a block ends there, or the markup does.
    """
    # Parsed text contains no NUL, raw text may.
    markup = without_marks(markup).replace("\0", "\ufffd")
    may_hide = ' hidden="' in markup or ' style="' in markup
    pieces, endless = markup.split("<"), set[str]()
    run, at, count, role_of = pieces[0], 1, len(pieces), _ROLES.get
    while at < count:
        tag, end, text = pieces[at].partition(">")
        role = role_of(tag)
        if role is None:
            role = _role(tag, may_hide=may_hide)
        at += 1
        if role == _NONE or (not end and role != _RAW and " " not in tag):
            run += text
        elif role == _OPEN:
            yield run, tag
            run = text
        elif role == _CLOSE:
            yield run, None
            run = text
        elif role == _LINK:
            found = _HREF.search(tag)
            run += link_target(found[1]) + text if found else text
        elif role == _IMAGE:
            found = _SOURCE.search(tag)
            run += image_target(found[1]) + text if found else text
        elif role == _CELL:
            run += " | " + text
        elif role == _BREAK:
            run += "\n" + text
        else:
            leave_out = _after_raw if role == _RAW else _after_skipped
            at, text = leave_out(pieces, at - 1, endless)
            run += text
    yield run, None


def _role(tag: str, *, may_hide: bool) -> int:
    """Return the role of a tag with attributes, or of an unusual one."""
    name = _name(tag)
    role = _ROLES.get(name, _NONE)
    if may_hide and role != _RAW and name != tag and _HIDDEN.search(tag):
        return _NONE if name in _VOID else _SKIP
    return _RAW if name.startswith(_COMMENT) else role


def _name(tag: str) -> str:
    return tag.partition(" ")[0]


def _after_raw(pieces: list[str], at: int, endless: set[str]) -> tuple[int, str]:
    """Return the next piece behind a comment or an element with raw content, and the text before.

    Args:
        at: its start tag.
        endless: ends that were searched for in vain. The text of `xmp` and `plaintext` is
            serialized unescaped: it may contain unclosed tags.
    """
    tag, _, text = pieces[at].partition(">")
    is_comment = tag.startswith(_COMMENT)
    end = _COMMENT_END if is_comment else f"/{_name(tag)}>"
    if end not in endless:
        for place in range(at if is_comment else at + 1, len(pieces)):
            piece = pieces[place]
            if is_comment:
                found = piece.find(end, len(_COMMENT) if place == at else 0)
            else:
                found = 0 if piece.startswith(end) else -1
            if found >= 0:
                return place + 1, piece[found + len(end) :]
        endless.add(end)
    return at + 1, text


def _after_skipped(pieces: list[str], at: int, endless: set[str]) -> tuple[int, str]:
    """Return the next piece behind an element, and the text before it.

    Serialized elements are well nested: an element ends where the tags of its name balance.
    """
    name = _name(pieces[at].partition(">")[0])
    depth, at = 1, at + 1
    while at < len(pieces):
        tag, _, text = pieces[at].partition(">")
        found = _name(tag)
        if _ROLES.get(found) == _RAW or found.startswith(_COMMENT):
            at, _ = _after_raw(pieces, at, endless)
            continue
        at += 1
        depth += (found == name) - (found == f"/{name}")
        if not depth:
            return at, text
    return at, ""


def resolve_entities(text: str) -> str:
    """Return text with the three entities that Lexbor writes resolved."""
    if "&" in text:
        text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return text
