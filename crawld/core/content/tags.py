"""Cuts serialized HTML at its tags, in one pass.

Lexbor serializes with every tag closed, every attribute quoted, and `<` and `>` escaped in text.
Every `<` is therefore a tag, and `str.split` finds them all. Only the tags that open or close a
block end a run of text. A loop over the pieces costs half as much as vectors of numpy for a page of
300 tags, and twice as much for an article of 2,000, which `tag_vectors.py` cuts.

In a run of text the tags of inline elements are removed, cells and line breaks are written as text,
and the targets of links and images are enclosed in marks (`targets.py`).

Left out with all their content: comments, elements with raw content, `SKIPPED`, and elements
hidden by `hidden` or an inline style.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from crawld.core.content.tag_roles import (
    BREAK,
    CELL,
    CLOSE,
    HIDDEN,
    IMAGE,
    LINK,
    NONE,
    OPEN,
    RAW,
    ROLES,
    SKIP,
    VOID,
)
from crawld.core.content.tag_vectors import vector_runs
from crawld.core.content.targets import target_of_image, target_of_link, without_marks

FEW_TAGS: Final = 1_000
"""Up to this number the loop costs less."""

_COMMENT: Final = "!--"
_COMMENT_END: Final = "-->"


def block_runs(markup: str) -> Iterator[tuple[str, str | None]]:
    """Cut the result of `LexborNode.html` into runs of text.

    Any other text gives an unspecified result, in linear time.

    Returns:
        Each run, in which entities are kept, and the tag that opens a block behind it, name and
        attributes; None: a block ends there, or the markup does.
    """
    # Parsed text contains no NUL, raw text may.
    markup = without_marks(markup).replace("\0", "\ufffd")
    return _runs(markup) if markup.count("<") <= FEW_TAGS else vector_runs(markup)


def _runs(markup: str) -> Iterator[tuple[str, str | None]]:
    may_hide = ' hidden="' in markup or ' style="' in markup
    pieces, endless = markup.split("<"), set[str]()
    run, at, count, role_of = pieces[0], 1, len(pieces), ROLES.get
    while at < count:
        tag, end, text = pieces[at].partition(">")
        role = role_of(tag)
        if role is None:
            role = _role(tag, may_hide=may_hide)
        at += 1
        if role == NONE or (not end and role != RAW and " " not in tag):
            run += text
        elif role == OPEN:
            yield run, tag
            run = text
        elif role == CLOSE:
            yield run, None
            run = text
        elif role == LINK:
            run += target_of_link(tag) + text
        elif role == IMAGE:
            run += target_of_image(tag) + text
        elif role == CELL:
            run += " | " + text
        elif role == BREAK:
            run += "\n" + text
        else:
            leave_out = _after_raw if role == RAW else _after_skipped
            at, text = leave_out(pieces, at - 1, endless)
            run += text
    yield run, None


def _role(tag: str, *, may_hide: bool) -> int:
    """Return the role of a tag with attributes, or of an unusual one."""
    name = _name(tag)
    role = ROLES.get(name, NONE)
    if may_hide and role != RAW and name != tag and HIDDEN.search(tag):
        return NONE if name in VOID else SKIP
    return RAW if name.startswith(_COMMENT) else role


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
        if ROLES.get(found) == RAW or found.startswith(_COMMENT):
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
