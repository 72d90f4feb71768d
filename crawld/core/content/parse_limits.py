"""Finds how much of an HTML page can be parsed within a limited time.

Lexbor builds a tree in one call, which holds the interpreter lock and cannot be stopped. The time
is linear for ordinary pages, but these grow with the square of the page:

- open elements: many tags search all of them (`<div>` for a `<p>`, an end tag for its start);
- attributes: each is compared with those before it, on the `html` and `body` elements with those
  of all `<html>` and `<body>` tags;
- formatting elements (`b`, `font` …) that stay open: each new one is compared with all of them, and
  each block clones them again, with their attributes;
- names of tags and attributes that HTML does not know: they share a small hash table.

`parsable_size` adds up the cost of a page, tag by tag, and returns where it exceeds `MAX_STEPS`.
`OpenElements` knows which elements are open. Where a construct can be read in two ways (raw text
within `svg`, for example), no element is closed any more (`OpenElements.certain`).

Most pages are too small to cost much, whatever they contain; they are only counted.

Invariants: linear time; a page within the limits is parsed whole.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from crawld.core.content.clone_memory import CloneMemory, has_few_clones
from crawld.core.content.formatting_model import FormattingModel
from crawld.core.content.markup_scan import MarkupScan
from crawld.core.content.open_elements import (
    FOREIGN,
    HEADING,
    HEADINGS,
    HTML_NAMES,
    SINGLE,
    OpenElements,
)
from crawld.core.content.tag_syntax import (
    ATTRIBUTE,
    ATTRIBUTE_NAME,
    BLANKS,
    NAME,
    RAW,
    TOKEN,
    raw_end,
)
from crawld.core.content.text_merging import MAX_COPIED_BYTES, TextMerging, may_merge_much
from crawld.core.content.tree_memory import TagScan, cloned_budget_bytes

MAX_PARSE_BYTES = 8 * 2**20
"""Bytes parsed of one page; a tree takes about 15 times its source."""

MAX_ELEMENTS = 150_000
"""Elements of one tree, clones included. Parsing takes 0.5 µs each, a search with a selector 0.3
µs, and each is one call that holds the interpreter lock."""

MAX_STEPS = 24_000_000
"""Steps of Lexbor, of 2.5 ns: 60 ms. Pages of a million bytes take 0.1 to 0.5 million."""

MAX_SMALL_BYTES, MAX_SMALL_TAGS = 2**15, 7_000
"""A page smaller than both cannot take more than 80 ms by its attributes or open elements."""

MAX_UNCOUNTED_BYTES = 2**20
"""Larger pages are always counted: Lexbor takes up to 25 ns for a byte, whatever it is."""

MAX_TINY = 60_000
"""Tags times bytes of a page that cannot take much, whatever it contains."""

MAX_ROOTS = 8
"""Tags of `html` and `body` in a page that need not be counted: their attributes merge into one
element, and each may have `_ATTRIBUTES_TO_COUNT`."""

_ATTRIBUTE_STEPS, _SIGN_STEPS, _ATTRIBUTE_SIGN_STEPS = 25, 25, 8
_CHARACTER_STEPS = {b"\0": 7, b"&": 8, b">": 3}
"""Steps of characters that Lexbor replaces, or escapes when it writes the tree."""

_MAX_USUAL_ATTRIBUTES = 2_000
"""Bytes of a tag's attributes up to which the signs within them do not matter."""

_ATTRIBUTES_TO_COUNT = 200
"""With this many attributes for each tag, the square of their number costs less than parsing."""

_MAX_LONG_TAGS = 50
_NAMES_PER_BUCKET = 4


_MADE_BY_END_TAGS = (b"p", b"br")
KNOWN = HTML_NAMES | frozenset(
    b"abbr acronym audio bdi bdo canvas cite data datalist del dfn g path ins kbd label legend map "
    b"mark meter output picture progress q samp slot time video alt action align charset checked "
    b"class color colspan content coords datetime disabled for headers height hidden href hreflang "
    b"id lang language loading max media method min multiple name nowrap onclick onload "
    b"placeholder property rel role rowspan scope selected shape size sizes src srcset tabindex "
    b"target type usemap valign value viewbox width xmlns".split()
)
"""Frequent names of tags and attributes, in no particular order: they cost no search."""

_FEW_ATTRIBUTES = re.compile(
    rb"(?:[^<]++|<(?![A-Za-z])|<%b(?:[%b/]*+%b){0,%d}+(?![%b/]*+[^%b/>]))*+"
    % (NAME, BLANKS, ATTRIBUTE, _ATTRIBUTES_TO_COUNT, BLANKS, BLANKS)
)


def parsable_size(scan: TagScan, most: int) -> int:
    """Return how many of the first `most` bytes can be parsed within the limits."""
    size = min(scan.size, most)
    if size > MAX_UNCOUNTED_BYTES:
        while _character_steps(scan.body, size) > MAX_STEPS:
            size //= 2
    elif scan.count * size <= MAX_TINY or (
        scan.count <= MAX_SMALL_TAGS and _is_small(scan, size) and not may_merge_much(scan, size)
    ):
        return size
    elif scan.count <= MAX_SMALL_TAGS and size <= MAX_SMALL_BYTES:
        return size_within_clones(scan, size)
    return PageCost(scan.body, size_within_clones(scan, size)).parsable_size()


def _is_small(scan: TagScan, size: int) -> bool:
    """Return whether a page of few tags surely costs little by clones and by attributes."""
    budget_bytes = cloned_budget_bytes(size)
    if size <= MAX_SMALL_BYTES and has_few_clones(scan, size, budget_bytes):
        return True
    tags = MarkupScan(scan, size)
    clones = CloneMemory(tags)
    if clones.exceeds(budget_bytes):
        return False
    return size <= MAX_SMALL_BYTES or (
        clones.kept_bytes <= MAX_SMALL_BYTES
        and tags.roots <= MAX_ROOTS
        and _has_few_attributes(tags)
    )


def size_within_clones(scan: TagScan, size: int) -> int:
    """Return how many leading bytes can be parsed before their clones exceed their memory."""
    budget_bytes = cloned_budget_bytes(size)
    clones = CloneMemory(MarkupScan(scan, size))
    if not clones.exceeds(budget_bytes):
        return size
    model = FormattingModel(scan.body, size, budget_bytes)
    if model.is_exact or model.cloned_bytes > budget_bytes:
        return model.position
    return clones.limit(model.position, budget_bytes - model.cloned_bytes)


def _character_steps(body: bytes, size: int) -> int:
    return sum(body.count(each, 0, size) * steps for each, steps in _CHARACTER_STEPS.items())


def _has_few_attributes(tags: MarkupScan) -> bool:
    """Return whether no tag has more than `_ATTRIBUTES_TO_COUNT`, each of two bytes at least."""
    if not tags.odd.any():
        long = np.flatnonzero(tags.ends - tags.starts > 2 * _ATTRIBUTES_TO_COUNT)
        long = long[tags.is_tag[long]]
        if long.size <= _MAX_LONG_TAGS:
            spans = zip(tags.starts[long].tolist(), tags.ends[long].tolist(), strict=True)
            return all(
                len(ATTRIBUTE_NAME.findall(tags.body, start, end)) <= _ATTRIBUTES_TO_COUNT
                for start, end in spans
            )
    few = _FEW_ATTRIBUTES.match(tags.body, 0, tags.size)
    return few is not None and few.end() == tags.size


class PageCost:
    """Adds up the cost of a page, tag by tag."""

    def __init__(self, body: bytes, size: int) -> None:
        self._body = body
        self._size = size
        self._open = OpenElements()
        self._texts = TextMerging(self._open)
        self._elements = 0
        self._names: set[bytes] = set()
        self._merged = Counter[bytes]()
        self._known_attributes: dict[bytes, list[bytes]] = {}

    @property
    def open_elements(self) -> int:
        """Return the number of elements that are open after the page."""
        return len(self._open)

    def parsable_size(self) -> int:
        """Return the offset of the tag that exceeds a limit, or the size."""
        position: int | None = 0
        text_start = 0
        while position is not None:
            tokens, position = TOKEN.finditer(self._body, position, self._size), None
            for token in tokens:
                if token.start() != text_start:
                    self._add_text(text_start, token.start())
                text_start = token.end()
                if token.lastindex is None:
                    self._open.steps += _SIGN_STEPS
                    if text_start - token.start() > 1:
                        self._texts.add_comment()
                elif token.lastindex == 3:
                    position = self._add_tag(token)
                else:
                    position = self._after_cdata(token.start())
                if (
                    self._open.steps > MAX_STEPS
                    or self._elements + self._open.clones > MAX_ELEMENTS
                    or self._texts.copied_bytes > MAX_COPIED_BYTES
                ):
                    return token.start()
                if position is not None:
                    text_start = position
                    break
        return self._size

    def _add_text(self, start: int, end: int) -> None:
        is_blank = self._body[start:end].isspace()
        self._open.in_body = self._open.in_body or not is_blank
        self._texts.add_text(end - start, is_blank=is_blank)
        self._open.add_text()

    def _add_tag(self, token: re.Match[bytes]) -> int | None:
        """Add one tag; return where its raw text ends if it has any."""
        closing, name, attributes = token.group(1, 2, 3)
        name = name.lower()
        if name in HEADINGS:
            name = HEADING
        count = self._add_attributes(name, attributes, closing) if attributes else 0
        if name not in KNOWN:
            self._add_name(name)
        found = self._open
        if closing:
            self._texts.add_end(name, attributes)
            found.add_end(name)
            self._elements += name in _MADE_BY_END_TAGS
        else:
            may_be_empty = attributes[-1:] == b"/" and (found.has_foreign() or name in FOREIGN)
            self._texts.add_start(name)
            found.add_start(name, attributes, count, empty=may_be_empty and _is_empty(attributes))
            self._elements += 1
        if not closing and name in RAW and not found.is_foreign():
            return self._after_raw(name, token.end())
        return len(self._body) if not closing and name == b"plaintext" else None

    def _add_attributes(self, name: bytes, attributes: bytes, closing: bytes) -> int:
        """Add the attributes of a tag; return how many there are."""
        names = self._known_attributes.get(attributes)
        if names is None:
            names = [each.lower() for each in ATTRIBUTE_NAME.findall(attributes)]
            if len(attributes) < 64:
                self._known_attributes[attributes] = names
        for each in names:
            if each not in KNOWN:
                self._add_name(each)
        compared = count = len(names)
        if name in SINGLE and not closing:
            compared = self._merged[name] = self._merged[name] + count
        self._open.steps += count * (_ATTRIBUTE_STEPS + compared)
        if len(attributes) > _MAX_USUAL_ATTRIBUTES:
            signs = sum(map(attributes.count, (b"<", b"=", b"/", b'"', b"'")))
            self._open.steps += signs * _ATTRIBUTE_SIGN_STEPS
        return count

    def _add_name(self, name: bytes) -> None:
        self._names.add(name)
        self._open.steps += len(self._names) // _NAMES_PER_BUCKET

    def _after_raw(self, name: bytes, start: int) -> int:
        """Return the offset after the raw text of an element."""
        end = raw_end(self._body, name, start, self._size)
        if self._open.is_unclear() and self._body.find(b"<", start, end) >= 0:
            # The text is markup if this is within svg, or if a select leaves the element out.
            self._open.certain = False
            return start
        return end

    def _after_cdata(self, start: int) -> int:
        """Return the offset after `<![CDATA[`, which is a comment outside svg and math."""
        bogus = self._body.find(b">", start, self._size) + 1 or self._size
        if self._open.has_foreign():
            section = self._body.find(b"]]>", start, self._size)
            if section + 3 != bogus:
                self._open.certain = False
                return start + 9
        return bogus


def _is_empty(attributes: bytes) -> bool:
    """Return whether the slash at the end of a tag is not part of an attribute's value."""
    end = 0
    for match in ATTRIBUTE_NAME.finditer(attributes):
        end = match.end()
    return end < len(attributes)
