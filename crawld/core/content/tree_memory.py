"""How much memory the tree of a page takes, estimated from its bytes before it is parsed.

A tree takes some 15 times its source, but hostile pages reach 150 times (`<p a b c>` repeated) and
a hundred thousand times: every paragraph clones the formatting elements that are still open, so
that 17 KB make a tree of a gigabyte. Clones have a budget of their own (`clone_memory`).

Measured with Lexbor: 350 to 500 bytes per element with its text and block, 250 per attribute, 650
per clone.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

TREE_BYTES = 160 * 2**20
"""Most memory of one tree. Real pages reach it at 3 to 8 MB."""

TAG_BYTES = 500
ATTRIBUTE_BYTES = 250
WORST_FACTOR = 130
"""Most bytes of a tree per byte of source, clones excepted: an attribute takes two."""

TEXT_FACTOR = 12
"""Most bytes of the text of a page, decoded and encoded again and cut into blocks, per byte."""

MAX_TEXT_BYTES = 8 * 2**20

MAX_ATTRIBUTES_PER_TAG = 2_000
"""A page is not parsed beyond a tag with more (`html.py`)."""

CLONE_BYTES = 650
CLONED_ATTRIBUTE_BYTES = 150
"""Memory of a clone and of its attributes, beside their text."""

MAX_CLONED_BYTES = 33 * 2**20
"""Memory of the clones of any page."""

CLONED_FACTOR = 40
"""Bytes of clones that a page may have beside, for each of its own, up to `TREE_BYTES`."""

_TAG_SIGN = ord("<")
SHORT_BYTES = 4096

_COUNTED_BYTES = 2**18
"""Bytes whose tags are counted at once: the comparison takes as many again."""


def clone_bytes(markup_bytes: int, attributes: int) -> int:
    """Return the memory of one clone of an element with these attributes."""
    return CLONE_BYTES + CLONED_ATTRIBUTE_BYTES * attributes + markup_bytes


def cloned_budget_bytes(size_bytes: int) -> int:
    """Return how much memory the clones of a page may take (`clone_memory`)."""
    return min(MAX_CLONED_BYTES + CLONED_FACTOR * size_bytes, TREE_BYTES)


def working_set_bytes(size_bytes: int) -> int:
    """Return the most memory that the analysis of one body takes, beside the body itself."""
    text_bytes = min(size_bytes, MAX_TEXT_BYTES)
    tree_bytes = min(WORST_FACTOR * text_bytes, TREE_BYTES)
    # The stored form is made while the tree lives, after the texts are gone.
    return tree_bytes + max(TEXT_FACTOR * text_bytes, size_bytes)


def comparison_bytes(*sizes_bytes: int) -> int:
    """Return the most memory that reading and comparing bodies of these sizes takes."""
    return sum(working_set_bytes(size) + size for size in sizes_bytes)


def size_within(memory_bytes: int) -> int:
    """Return how many leading bytes of a page can be analysed within so much memory."""
    size_bytes = MAX_TEXT_BYTES
    while size_bytes > 1 and working_set_bytes(size_bytes) > memory_bytes:
        size_bytes //= 2
    return size_bytes


def count_tags(body: bytes, size: int) -> int:
    """Return the number of `<` in the leading `size` bytes: at least the number of tags.

    It takes a third of the time of `bytes.count`, which looks at one byte at a time.
    """
    if size <= SHORT_BYTES:
        return body.count(b"<", 0, size)
    text = np.frombuffer(body, dtype=np.uint8, count=size)
    parts = range(0, size, _COUNTED_BYTES)
    return sum(int(np.count_nonzero(text[at : at + _COUNTED_BYTES] == _TAG_SIGN)) for at in parts)


class TagScan:
    """The tags of the leading `size` bytes of a page, scanned once for all its limits.

    Attributes:
        body: the page, in UTF-8.
        size: how many of its bytes are to be parsed at most.
    """

    def __init__(self, body: bytes, size: int) -> None:
        self.body = body
        self.size = size

    @cached_property
    def count(self) -> int:
        """At least the number of tags."""
        return count_tags(self.body, self.size)

    @cached_property
    def text(self) -> np.ndarray:
        """The bytes."""
        return np.frombuffer(self.body, dtype=np.uint8, count=self.size)

    @cached_property
    def starts(self) -> np.ndarray:
        """Offsets of each `<`."""
        return np.flatnonzero(self.text == _TAG_SIGN)

    @cached_property
    def words(self) -> np.ndarray:
        """The sign and the three bytes after it, as a number, for each of `starts`."""
        text = np.zeros(self.size + 4, dtype=np.uint8)
        text[: self.size] = self.text
        words = np.ndarray(shape=(self.size + 1,), dtype=">u4", buffer=text, strides=(1,))
        found: np.ndarray = words[self.starts]
        return found


def tree_limit(scan: TagScan) -> int:
    """Return how many leading bytes make a tree of at most `TREE_BYTES`, clones excepted."""
    size = scan.size
    if size * WORST_FACTOR <= TREE_BYTES:
        return size
    text, tags = scan.text, scan.starts
    most = TREE_BYTES // TAG_BYTES
    if tags.size > most:
        size = int(tags[most])
        tags, text = tags[:most], text[:size]
    if not tags.size:
        return size
    costs = TAG_BYTES + ATTRIBUTE_BYTES * attribute_counts(text, tags)
    kept = int(np.searchsorted(np.cumsum(costs), TREE_BYTES, "right"))
    return size if kept == tags.size else int(tags[kept])


def attribute_counts(text: np.ndarray, tags: np.ndarray) -> np.ndarray:
    """Return at most how many attributes each tag has.

    An attribute follows white space, a slash or the closing quote of another. A tag may end at any
    `>` before the next `<`.
    """
    marks = np.zeros(256, dtype=np.int32)
    marks[[*b" \t\n\r\f/"]] = 2
    marks[[*b"\"'"]] = 1
    before = np.zeros(text.size + 1, dtype=np.int32)
    np.cumsum(marks[text], out=before[1:])
    nexts = np.append(tags[1:], text.size)
    ends = np.flatnonzero(text == ord(">"))
    if not ends.size:
        last = nexts  # no tag ends: each may
    else:
        place = np.searchsorted(ends, nexts) - 1
        last = np.where(place >= 0, ends[place], tags)
        last[-1] = text.size if last[-1] < tags[-1] else last[-1]
    found = (before[np.maximum(last, tags)] - before[tags]) // 2
    capped: np.ndarray = np.minimum(found, MAX_ATTRIBUTES_PER_TAG).astype(np.int64)
    return capped
