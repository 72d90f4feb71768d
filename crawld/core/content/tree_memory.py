"""How much memory the tree of a page takes, estimated from its bytes before it is parsed.

A tree takes some 15 times its source, but hostile pages reach 150 times (`<p a b c>` repeated) and
a hundred thousand times: every paragraph clones the formatting elements that are still open, so
that 17 KB make a tree of a gigabyte.

Measured with Lexbor: 350 to 500 bytes per element with its text and block, 250 per attribute, 650
per clone.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

TREE_BYTES = 160 * 2**20
"""Most memory of one tree. Real pages reach it at 3 to 8 MB."""

TAG_BYTES = 500
ATTRIBUTE_BYTES = 250
CLONE_BYTES = 650
WORST_FACTOR = 130
"""Most bytes of a tree per byte of source, clones excepted: an attribute takes two."""

TEXT_FACTOR = 12
"""Most bytes of the text of a page, decoded and encoded again and cut into blocks, per byte."""

MAX_TEXT_BYTES = 8 * 2**20

MAX_ATTRIBUTES_PER_TAG = 2_000
"""A page is not parsed beyond a tag with more (`html.py`)."""

MAX_CLONES = 50_000
"""Clones of any page; 33 MB. Larger pages may have more, one for two bytes."""

_CHECK_TAGS = int(2 * math.sqrt(MAX_CLONES))
"""With fewer tags there cannot be more clones: half of them open elements, half copy them."""

_TAG_SIGN = ord("<")
_UPPER_CASE = 0xFFDFDFDF
"""Mask of a word that makes its three letters upper case."""

_HTML, _BODY = (int.from_bytes(name, "big") for name in (b"<HTM", b"<BOD"))
_SHORT_BYTES = 4096
_COUNTED_BYTES = 2**18
"""Bytes whose tags are counted at once: the comparison takes as many again."""

_NAME_ENDS = tuple(b" \t\n\r\f/>")

_FORMATTING = [
    "b",
    "big",
    "code",
    "em",
    "font",
    "i",
    "nobr",
    "s",
    "small",
    "strike",
    "strong",
    "tt",
    "u",
]
"""Elements that are cloned; of `a` only one is open at a time."""


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


def analysis_bytes(body: bytes, size: int) -> int:
    """Return the most memory that the analysis of the leading `size` bytes of a page takes.

    By its tags, where `working_set_bytes` goes by its length: an article takes a fifth of that.
    """
    scan = TagScan(body, size)
    tags = scan.starts
    tree_bytes = TAG_BYTES * scan.count
    if tags.size:
        tree_bytes += ATTRIBUTE_BYTES * int(_attributes(scan.text, tags).sum())
        clones = _clones(scan, tags, 0)
        tree_bytes += CLONE_BYTES * (0 if clones is None else int(clones.sum()))
    return min(tree_bytes, WORST_FACTOR * size, TREE_BYTES) + TEXT_FACTOR * size


def analysable_size(body: bytes, memory_bytes: int) -> int:
    """Return how many leading bytes of a page can be analysed within so much memory."""
    size = min(len(body), MAX_TEXT_BYTES)
    while size > _SHORT_BYTES and analysis_bytes(body, size) > memory_bytes:
        size //= 2
    return size


def count_tags(body: bytes, size: int) -> int:
    """Return the number of `<` in the leading `size` bytes: at least the number of tags.

    It takes a third of the time of `bytes.count`, which looks at one byte at a time.
    """
    if size <= _SHORT_BYTES:
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
        """Offsets of each `<` that four bytes follow."""
        return np.flatnonzero(self.text[:-4] == _TAG_SIGN)

    @cached_property
    def words(self) -> np.ndarray:
        """The sign and the three bytes after it, as a number, for each of `starts`."""
        return self.words_at(self.starts)

    def words_at(self, offsets: np.ndarray) -> np.ndarray:
        """Return the four bytes at each offset, as a number."""
        if not offsets.size:
            return np.zeros(0, dtype=">u4")
        words = np.ndarray(shape=(len(self.body) - 3,), dtype=">u4", buffer=self.body, strides=(1,))
        found: np.ndarray = words[offsets]
        return found

    def formatting(self) -> list[int]:
        """Return the offsets of tags that may begin a formatting element."""
        found: list[int] = self.starts[_IS_FORMATTING[self.words & 0xFFFFFF]].tolist()
        return found

    def roots(self) -> int:
        """Return how many tags may begin an `html` or `body` element."""
        names = self.words & _UPPER_CASE
        return int(np.count_nonzero((names == _HTML) | (names == _BODY)))


def tree_limit(scan: TagScan) -> int:
    """Return how many leading bytes of a page make a tree of at most `TREE_BYTES`.

    Also cuts the page where more elements are cloned than `MAX_CLONES` allows.
    """
    size = scan.size
    may_exceed = size * WORST_FACTOR > TREE_BYTES
    if not may_exceed and scan.count < _CHECK_TAGS:
        return size
    text, tags = scan.text, scan.starts
    most = TREE_BYTES // TAG_BYTES
    if tags.size > most:
        size = int(tags[most])
        tags, text = tags[:most], text[:size]
    if not tags.size:
        return size
    kept, max_clones = tags.size, MAX_CLONES + size // 2
    clones = _clones(scan, tags, max_clones)
    if clones is not None:
        kept = int(np.searchsorted(np.cumsum(clones), max_clones, "right"))
    if may_exceed:
        costs = TAG_BYTES + ATTRIBUTE_BYTES * _attributes(text, tags)
        kept = min(kept, int(np.searchsorted(np.cumsum(costs), TREE_BYTES, "right")))
    return size if kept == tags.size else int(tags[kept])


def _name_codes() -> np.ndarray:
    """Return which three bytes after `<` or `</` begin a formatting element, as a table of 2**24.

    One look-up takes a third of the time of three; most of the table is never touched.
    """
    table = np.zeros(2**24, dtype=np.bool_)
    for name in _FORMATTING:
        letters = [(letter, letter ^ 32) for letter in name.encode()]
        first, second, third = (*letters, _NAME_ENDS, range(256))[:3]
        for high in first:
            for middle in second:
                table[[high << 16 | middle << 8 | low for low in third]] = True
    return table


_IS_FORMATTING = _name_codes()


def _clones(scan: TagScan, tags: np.ndarray, most: int) -> np.ndarray | None:
    """Return at most how many formatting elements are cloned at each tag; None: few."""
    found = scan.words[: tags.size]
    begins = _IS_FORMATTING[found & 0xFFFFFF]
    if int(np.count_nonzero(begins)) * tags.size <= most:
        return None
    closing = (found >> 16 & 0xFF) == ord("/")
    ends = _IS_FORMATTING[scan.words_at(tags + 1) & 0xFFFFFF] & closing
    depth = np.cumsum(begins.astype(np.int64) - ends)
    # An end tag without a start closes nothing: measure from the lowest point so far.
    depth -= np.minimum(np.minimum.accumulate(depth), 0)
    # They are cloned after another element, such as a paragraph, begins or ends.
    return np.where(begins | ends, 0, depth)


def _attributes(text: np.ndarray, tags: np.ndarray) -> np.ndarray:
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
