"""How much memory the analysis of one page takes, by its tags."""

from __future__ import annotations

from crawld.core.content.clone_memory import CloneMemory
from crawld.core.content.markup_scan import MarkupScan
from crawld.core.content.tree_memory import (
    ATTRIBUTE_BYTES,
    MAX_TEXT_BYTES,
    SHORT_BYTES,
    TAG_BYTES,
    TEXT_FACTOR,
    TREE_BYTES,
    WORST_FACTOR,
    TagScan,
    attribute_counts,
    cloned_budget_bytes,
    count_tags,
)


def analysis_bytes(body: bytes, size: int) -> int:
    """Return the most memory that the analysis of the leading `size` bytes of a page takes.

    By its tags, where `working_set_bytes` goes by its length: an article takes a fifth of that.
    """
    scan = TagScan(body, size)
    tags = scan.starts
    tree_bytes = TAG_BYTES * scan.count
    if tags.size:
        tree_bytes += ATTRIBUTE_BYTES * int(attribute_counts(scan.text, tags).sum())
    cloned_bytes = min(CloneMemory(MarkupScan(scan, size)).total_bytes, cloned_budget_bytes(size))
    tree_bytes = min(tree_bytes, WORST_FACTOR * size) + cloned_bytes
    return min(tree_bytes, TREE_BYTES) + TEXT_FACTOR * size


def analysable_size(body: bytes, memory_bytes: int) -> int:
    """Return how many leading bytes of a page can be analysed within so much memory.

    To find that takes less: a scan takes some 100 bytes for each `<`, a tag more than it.
    """
    size = min(len(body), MAX_TEXT_BYTES)
    while size > SHORT_BYTES and TAG_BYTES * count_tags(body, size) > memory_bytes:
        size //= 2
    while size > SHORT_BYTES and analysis_bytes(body, size) > memory_bytes:
        size //= 2
    return size
