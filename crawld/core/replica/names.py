"""Similarity of two host names: edit distance, common segments, and the difference in words.

The distance is computed for whole arrays of pairs: a table per host holds the positions of each
letter in its name, and the columns of the distance matrix are bits of one machine word.

Source: Myers 1999, "A fast bit-vector algorithm for approximate string matching", in the form of
Hyyrö 2003 for edit distance; weights of segments: Carvalho 2014 after Bharat et al. 2000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xxhash

from crawld.core.replica.hosts import Ids, Keys
from crawld.core.replica.owners import differ_by_www, is_address, without_port
from crawld.core.replica.vectors import Commonness, Floats, Vectors, weighted_vectors
from crawld.core.url import private_suffix, registrable_domain

LETTERS = 64
"""Letters compared: the bits of a machine word. A longer name is cut on the left."""

_ALPHABET = {letter: at + 1 for at, letter in enumerate("abcdefghijklmnopqrstuvwxyz0123456789-._")}

_CODES: Ids = np.array([_ALPHABET.get(chr(byte), 0) for byte in range(256)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class NameTable:
    """Prepared host names.

    Attributes:
        letters: code of each letter, shape (hosts, `LETTERS`), 0 after the end.
        places: bit mask of the positions of each code, shape (hosts, codes).
        length: letters of each name.
        segments: weighted vectors of the parts between the dots.
    """

    letters: Ids
    places: Keys
    length: Ids
    segments: Vectors

    @classmethod
    def of(cls, names: Sequence[str], segments: Commonness | None = None) -> NameTable:
        """Return the table of some host names.

        `segments` tells how many hosts have each part of a name; None: counted here.
        """
        shown = [name[-LETTERS:].encode("ascii", "replace") for name in names]
        joined = b"".join(part.ljust(LETTERS, b"\0") for part in shown)
        letters = _CODES[np.frombuffer(joined, dtype=np.uint8)].reshape(len(names), LETTERS)
        length = np.array([len(part) for part in shown], dtype=np.int64)
        places = np.zeros((len(names), len(_ALPHABET) + 1), dtype=np.uint64)
        for at in range(LETTERS):
            places[np.arange(len(names)), letters[:, at]] |= np.where(
                at < length, np.uint64(1) << np.uint64(at), np.uint64(0)
            )
        return cls(letters, places, length, _segments(names, segments))


def edit_distance(table: NameTable, one: Ids, other: Ids) -> Ids:
    """Return the edit distance of each pair of names.

    >>> table = NameTable.of(["example.com", "www.example.com", "exmaple.com"])
    >>> edit_distance(table, np.array([0, 0]), np.array([1, 2])).tolist()
    [4, 2]
    """
    length, text_length = table.length[one], table.length[other]
    zero, unit = np.uint64(0), np.uint64(1)
    plus = np.full(len(one), ~zero)
    minus = np.zeros(len(one), dtype=np.uint64)
    last = unit << (np.maximum(length, 1) - 1).astype(np.uint64)
    distance = length.copy()
    for at in range(int(text_length.max(initial=0))):
        equal = table.places[one, table.letters[other, at]]
        diagonal = (((equal & plus) + plus) ^ plus) | equal | minus
        across_plus = minus | ~(diagonal | plus)
        across_minus = plus & diagonal
        step = ((across_plus & last) != zero).astype(np.int64)
        step -= (across_minus & last) != zero
        distance = np.where(at < text_length, distance + step, distance)
        across_plus = (across_plus << unit) | unit
        across_minus = across_minus << unit
        plus = across_minus | ~(diagonal | across_plus)
        minus = across_plus & diagonal
    return np.where(length == 0, text_length, distance)


def difference_in_words(one: str, other: str) -> str | None:
    """Return the difference of two names in words; None if it is not a simple one.

    >>> difference_in_words("www.example.com", "example.com")
    'names differ by www.'
    """
    if differ_by_www(one, other):
        return "names differ by www."
    if without_port(one) == without_port(other):
        return "one name, two ports"
    if (
        registered_label(one)
        and registered_label(one) == registered_label(other)
        and _subdomain(one) == _subdomain(other)
    ):
        return "names differ by the top-level domain"
    if registered_label(one) and registrable_domain(one) == registrable_domain(other):
        return f"both under {registrable_domain(one)}"
    return None


def registered_label(name: str) -> str:
    """Return the label before the public suffix of a name; empty if there is none."""
    return "" if is_address(name) else (private_suffix(name) or "").partition(".")[0]


def _subdomain(name: str) -> str:
    domain = private_suffix(name) or name
    return name.removesuffix(domain).removeprefix("www.")


def common_segments(names: Sequence[str]) -> Commonness:
    """Return how many hosts have each part of a name."""
    host, term, _ = _segment_entries(names)
    return Commonness.of(host, term)


def _segments(names: Sequence[str], common: Commonness | None) -> Vectors:
    host, term, length = _segment_entries(names)

    def weight(value: Keys, df: Ids, _: int) -> Floats:
        letters = np.array([length[one] for one in value.tolist()], dtype=np.float64)
        found: Floats = np.log(letters) / (1.0 + np.log(df))
        return found

    if common is None:
        common = Commonness.of(host, term)
    return weighted_vectors(host, term, len(names), weight, common)


def _segment_entries(names: Sequence[str]) -> tuple[Ids, Keys, dict[int, int]]:
    """Return the host and the key of each part of a name, and the letters of each part by key."""
    keys: dict[str, int] = {}
    host, term = [], []
    for index, name in enumerate(names):
        for segment in name.split("."):
            if (key := keys.get(segment)) is None:
                key = keys[segment] = xxhash.xxh3_64_intdigest(segment.encode())
            host.append(index)
            term.append(key)
    length = {key: max(len(segment), 1) for segment, key in keys.items()}
    return np.array(host, dtype=np.int64), np.array(term, dtype=np.uint64), length
