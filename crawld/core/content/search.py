"""Full-text search: extracts the indexed text of a page, parses queries, makes snippets of hits.

In a query all words must occur; `"several words"` must be adjacent, `begin*` matches any word with
that prefix, `-word` must not occur, `title:word` must occur in the title. Any text is a valid
query, perhaps without results, and no part of it reaches the index unquoted.

Scripts without spaces between words are indexed character by character, and searched as characters
in a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crawld.core.content.blocks import Blocks
from crawld.core.content.tags import resolve_entities
from crawld.core.content.targets import TARGET, without_targets

MAX_TEXT = 500_000
"""Characters indexed of one page."""

MAX_QUERY = 1_000
"""Characters read of a query: each word is searched for in whole pages."""

MAX_TERMS = 32

SNIPPET_CHARACTERS = 240
_CUT_CHARACTERS = 20
"""A longer word may be cut at the edge of a snippet."""

_ENTITY_CHARACTERS = 5
"""Most characters that Lexbor writes for one."""

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\u0e00-\u0eff"
_CHARACTER = re.compile(f"[{_UNSPACED}]")
_KIND = re.compile(r"(?:h[1-6]|pre): |[*|>] ")
_KIND_STARTS = frozenset("hp*|>")
_TERM = re.compile(r"(-?)(?:(title|text):)?(?:\"([^\"]*)\"?|([^\s\"]+))", re.IGNORECASE)
_WORD = re.compile(r"\w+")


class Query(NamedTuple):
    """A parsed query.

    Attributes:
        match: FTS5 match expression; empty: no result.
        words: lower-case words to highlight in hits; with `*` at the end: beginnings of words.
    """

    match: str
    words: tuple[str, ...]


def searchable_text(blocks: Blocks) -> str:
    """Return the visible text of a page without its title, one line for each block."""
    if sum(map(len, blocks.texts)) <= MAX_TEXT:
        return _all_text(blocks.texts)
    lines: list[str] = []
    left = MAX_TEXT
    for block in blocks.texts:
        if left <= 0:
            break
        if not block.startswith("title: "):
            lines.append(_plain_text(block, left))
            left -= len(lines[-1]) + 1
    return "\n".join(lines)[:MAX_TEXT]


def _all_text(texts: Sequence[str]) -> str:
    """Return the same of a page whose text needs no cut: its targets are removed at once."""
    kept = [
        block[kind.end() :] if block[:1] in _KIND_STARTS and (kind := _KIND.match(block)) else block
        for block in texts
        if not block.startswith("title: ")
    ]
    return resolve_entities(without_targets("\n".join(kept)))


def _plain_text(block: str, most: int) -> str:
    """Return at least the first `most` characters of the text of a block."""
    kind = _KIND.match(block)
    start = end = kind.end() if kind else 0
    if len(block) <= most:
        return resolve_entities(without_targets(block[start:]))
    pieces: list[str] = []
    left = _ENTITY_CHARACTERS * most
    for target in TARGET.finditer(block, start):
        end = target.start()
        pieces.append(block[start:end])
        left -= end - start
        start = target.end()
        if left <= 0:
            break
    pieces.append(block[start : start + max(left, 0)])
    return resolve_entities("".join(pieces))


def separate_characters(text: str) -> str:
    """Return a text with spaces around each character of a script without spaces.

    >>> separate_characters("SQLite数据库")
    'SQLite 数  据  库 '
    """
    return text if text.isascii() else _CHARACTER.sub(r" \g<0> ", text)


def parse_query(text: str) -> Query:
    """Parse a query typed by a person.

    >>> parse_query('web "a crawler" -spider pol*').match
    '("web" AND "a crawler" AND "pol"*) NOT ("spider")'
    """
    wanted: list[str] = []
    unwanted: list[str] = []
    words: list[str] = []
    for minus, column, phrase, word in _TERM.findall(text[:MAX_QUERY])[:MAX_TERMS]:
        begins = bool(word) and word.endswith("*")
        found = _WORD.findall(separate_characters(phrase or word))
        if not found:
            continue
        term = f'"{" ".join(found)}"{"*" if begins else ""}'
        term = f"{column.lower()} : {term}" if column else term
        (unwanted if minus else wanted).append(term)
        if not minus:
            words += (each.lower() for each in found)
            words[-1] += "*" if begins else ""
    if not wanted:
        return Query("", ())
    match = " AND ".join(wanted)
    if unwanted:
        match = f"({match}) NOT ({' OR '.join(unwanted)})"
    return Query(match, tuple(dict.fromkeys(words)))


def snippet(text: str, words: Sequence[str]) -> list[tuple[str, bool]]:
    """Return a part of a text that contains some of the words, in pieces, cut between words.

    Args:
        words: as in `Query`.

    Returns:
        (text, whether it is one of the words), in order; white space is one space.
    """
    plain = " ".join(text.split())
    pattern = _pattern(words)
    first = pattern.search(plain) if pattern else None
    start = max(first.start() - SNIPPET_CHARACTERS // 4, 0) if first else 0
    if start:
        start = plain.find(" ", start, start + _CUT_CHARACTERS) + 1 or start
    end = min(start + SNIPPET_CHARACTERS, len(plain))
    if end < len(plain):
        space = plain.rfind(" ", end - _CUT_CHARACTERS, end + 1)
        end = space if space > start else end
    pieces = list(_pieces(plain[start:end], pattern))
    if start:
        pieces.insert(0, ("… ", False))
    if end < len(plain):
        pieces.append((" …", False))
    return pieces


def _pattern(words: Sequence[str]) -> re.Pattern[str] | None:
    if not words:
        return None
    either = "|".join(map(_word_pattern, sorted(words, key=len, reverse=True)))
    return re.compile(
        rf"(?:(?<!\w)|(?<=[{_UNSPACED}])|(?=[{_UNSPACED}]))(?:{either})", re.IGNORECASE
    )


def _word_pattern(word: str) -> str:
    """Return the pattern of a whole word from its beginning, or of a character that is one."""
    plain = re.escape(word.removesuffix("*"))
    if _CHARACTER.fullmatch(word):
        return plain
    if word.endswith("*"):
        return rf"{plain}(?:(?![{_UNSPACED}])\w)*"
    return rf"{plain}(?:(?!\w)|(?=[{_UNSPACED}]))"


def _pieces(text: str, pattern: re.Pattern[str] | None) -> Iterator[tuple[str, bool]]:
    position = 0
    for match in pattern.finditer(text) if pattern else ():
        if match.start() > position:
            yield text[position : match.start()], False
        yield match[0], True
        position = match.end()
    if position < len(text):
        yield text[position:], False
