"""Matches URLs against the rules of a robots.txt, in bounded time whatever the rules are.

The longest matching rule wins, `*` is any text, `$` at the end anchors, and an allow rule wins a
tie, as search engines do it. Rules are compiled once:

- A rule without `*` is a prefix, or a whole URL if it ends in `$`. Prefixes are sorted; the longest
  prefix of a URL is the entry before the URL in this order, or one of the prefixes of that entry,
  each of which knows the strongest rule among itself and its own prefixes.
- A rule with `*` is a glob. Its longest literal (up to `LITERAL_LENGTH` characters) must occur in
  the URL; RE2 finds the literals of all globs in one pass, and only these globs are matched,
  strongest first.

What is beyond a limit forbids more than the site asked, never less:

- Of globs beyond `MAX_GLOBS`, an allow rule is ignored, and a disallow rule forbids everything that
  starts with its text before the first `*`, whatever rule allows it.
- A URL whose globs cost more than `MAX_STEPS` is forbidden.

Both sides have their percent-encoding normalized: escapes are decoded except those of `/`, `%` and
(in rules) `*`, then everything but unreserved characters and `/`, `%`, `=` is encoded.

Source: RFC 9309 section 2.2.2. A `$` inside a rule, `/index.html` and rules that are absolute URLs
are treated as protego does; `tests/property/test_robots_properties.py` compares the two.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import re2

MAX_GLOBS = 2_000
"""Rules with `*` that are matched as written; large sites have a few hundred."""

MAX_STEPS = 256
"""Most searches for a part of a glob in one URL; 20 to 40 microseconds."""

STEP_CHARACTERS = 4_096
"""A search whose worst case (product of the lengths) is larger counts as several steps."""

LITERAL_LENGTH = 12
"""Characters of a glob that RE2 looks for: `MAX_GLOBS` of them fit into RE2's memory limit."""

LITERAL_BYTES = 2_000
"""Memory of RE2's automaton for each glob."""

FEW_GLOBS = 16
"""Up to so many globs are matched one by one, which costs less than RE2."""

_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~"
_NO_RULE = 1
"""Rank where no rule matches: odd, so that the URL is allowed."""
_CLOSED = 1 << 60
"""Rank above that of every rule; even, so that the URL is forbidden."""

# One character class each: linear.
_PLAIN_TARGET = re.compile(r"[A-Za-z0-9_.~/=-]*").fullmatch
_PLAIN_RULE = re.compile(r"[A-Za-z0-9_.~/=*-]+\$?").fullmatch
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_STARS = re.compile(r"\*+")


class _Normalizer:
    """Normalizes percent-encoding; escapes of the `kept` characters stay escapes."""

    def __init__(self, kept: str) -> None:
        self._decoded = {
            spelling: b"%%%02X" % code if chr(code) in kept else bytes([code])
            for code in range(256)
            for spelling in _spellings(code)
        }
        verbatim = _UNRESERVED + kept + "="
        self._encoded = [
            chr(code) if chr(code) in verbatim else f"%{code:02X}" for code in range(256)
        ]

    def __call__(self, text: str) -> str:
        raw = text.encode(errors="replace")
        if b"%" in raw:
            decoded = _ESCAPE.sub(lambda escape: self._decoded[escape[1]], raw)
            raw = decoded.decode(errors="replace").encode()
        return raw.decode("latin-1").translate(self._encoded)


def _spellings(code: int) -> set[bytes]:
    high, low = f"{code:X}".zfill(2)[0], f"{code:X}"[-1]
    return {f"{a}{b}".encode() for a in (high, high.lower()) for b in (low, low.lower())}


_normal_target = _Normalizer("/%")
_normal_rule = _Normalizer("/%*")


def _normalize_rule(text: str) -> str:
    if _PLAIN_RULE(text):
        return text
    if text.startswith(("https://", "http://")):
        text = f"/{text}"
    anchor = "$" if text.endswith("$") else ""
    return _normal_rule(text.removesuffix("$")) + anchor


@dataclass(frozen=True, slots=True)
class _Glob:
    """A rule with `*`: the parts between its stars; `rank` as in `RobotsRules`."""

    rank: int
    head: str
    middle: tuple[str, ...]
    tail: str
    anchored: bool

    def literal(self) -> str:
        longest = max((self.head, *self.middle, self.tail), key=len)
        return longest[:LITERAL_LENGTH]

    def match(self, target: str, steps: int) -> tuple[bool, int]:
        """Return whether it matches, and the steps left; a negative number: too many needed."""
        if not target.startswith(self.head):
            return False, steps - 1
        at = len(self.head)
        for part in self.middle:
            steps -= 1 + len(part) * (len(target) - at) // STEP_CHARACTERS
            if steps < 0:
                return False, steps
            found = target.find(part, at)
            if found < 0:
                return False, steps
            at = found + len(part)
        if self.anchored:
            return len(target) - len(self.tail) >= at and target.endswith(self.tail), steps - 1
        steps -= 1 + len(self.tail) * (len(target) - at) // STEP_CHARACTERS
        return steps >= 0 and target.find(self.tail, at) >= 0, steps


class RobotsRules:
    """The compiled allow and disallow rules of one group.

    The rank of a rule is twice its normalized length, plus one if it allows: the highest rank among
    the matching rules decides, and is odd if the URL is allowed.

    Attributes:
        kept: rules that are matched as written.
        ignored: rules beyond `MAX_GLOBS`.
        size_bytes: memory, roughly.
    """

    __slots__ = ("_best", "_exact", "_globs", "_jumps", "_literals", "_parents", "_prefixes",
                 "ignored", "kept", "size_bytes")  # fmt: skip

    def __init__(self, rules: Iterable[tuple[bool, str]]) -> None:
        """Compile rules: whether each allows, and its text as written."""
        ranks: dict[str, int] = {}
        self._exact: dict[str, int] = {}
        globs: dict[str, int] = {}
        self.kept = self.ignored = 0
        for allow, text in dict.fromkeys(rules):
            beyond = [
                pattern
                for pattern in _patterns(text, allow=allow)
                if not self._add(pattern, 2 * len(pattern) + allow, ranks, globs)
            ]
            for pattern in beyond:
                if not allow:
                    ranks[pattern.partition("*")[0]] = _CLOSED
            self.ignored += bool(beyond)
            self.kept += not beyond
        self._globs = sorted(map(_glob, globs, globs.values()), key=_rank, reverse=True)
        self._literals = _Literals(self._globs) if len(self._globs) > FEW_GLOBS else None
        self._link(ranks)
        texts = (*self._prefixes, *self._exact, *globs)
        self.size_bytes = 500 + sum(map(len, texts)) + 200 * len(texts)
        if self._literals is not None:
            self.size_bytes += LITERAL_BYTES * len(globs)

    def _add(self, pattern: str, rank: int, ranks: dict[str, int], globs: dict[str, int]) -> bool:
        """Add a pattern to the table of its kind; return whether there was room."""
        head, star, rest = pattern.partition("*")
        if not star:
            table = self._exact if pattern.endswith("$") else ranks
            text = pattern.removesuffix("$")
        elif not rest.removesuffix("$").strip("*"):
            table, text = ranks, head  # nothing but stars: a prefix
        else:
            table, text = globs, _STARS.sub("*", pattern)
            if len(globs) >= MAX_GLOBS and text not in globs:
                return False
        table[text] = max(rank, table.get(text, 0))
        return True

    def _link(self, ranks: dict[str, int]) -> None:
        """Sort the prefixes and link each to the longest other prefix that it starts with.

        `_jumps` skips many links at once, so that a walk up a chain of 1,000 prefixes, each one
        character longer than the last, takes some 20 steps (Myers 1983, "An applicative
        random-access stack").
        """
        # The empty text is the root: a prefix of every URL and of every other prefix.
        ranks.setdefault("", _NO_RULE)
        prefixes = self._prefixes = sorted(ranks)
        best, parents, jumps = array("q"), array("l"), array("l")
        depths = array("l")
        above: list[int] = []
        for at, prefix in enumerate(prefixes):
            while above and not prefix.startswith(prefixes[above[-1]]):
                above.pop()
            parent = above[-1] if above else 0
            above.append(at)
            parents.append(parent)
            depths.append(depths[parent] + 1 if at else 0)
            jump = jumps[parent] if at else 0
            further = jumps[jump] if at else 0
            even = depths[parent] - depths[jump] == depths[jump] - depths[further]
            jumps.append(further if even else parent)
            best.append(max(ranks[prefix], best[parent] if at else _NO_RULE))
        self._best, self._parents, self._jumps = best, parents, jumps

    def allow(self, target: str) -> bool:
        """Return whether the path and query of a canonical URL may be fetched."""
        return self.rank(target) % 2 == 1

    def rank(self, target: str) -> int:
        """Return the highest rank of the rules that match the path and query of a URL."""
        if not _PLAIN_TARGET(target):
            target = _normal_target(target)
        rank = max(self._prefix_rank(target), self._exact.get(target, _NO_RULE))
        return self._glob_rank(target, rank) if self._globs else rank

    def _prefix_rank(self, target: str) -> int:
        prefixes = self._prefixes
        at = bisect_right(prefixes, target) - 1
        while not target.startswith(prefixes[at]):
            jump = self._jumps[at]
            # If even the far prefix does not match, none between matches.
            at = self._parents[at] if target.startswith(prefixes[jump]) else jump
        return self._best[at]

    def _glob_rank(self, target: str, rank: int) -> int:
        """Return the higher of a rank and that of the strongest glob that matches."""
        globs: Iterable[_Glob] = self._globs
        if self._literals is not None:
            globs = self._literals.possible(target)
        steps = MAX_STEPS
        for glob in globs:
            if glob.rank <= rank:
                break
            matches, steps = glob.match(target, steps)
            if steps < 0:
                return _CLOSED
            if matches:
                return glob.rank
        return rank


def deciding_rule(rules: Sequence[tuple[bool, str]], target: str) -> int | None:
    """Return the place of the first rule that decides about the path and query of a URL.

    None if no rule matches, or if a limit decides.
    """
    rank = RobotsRules(rules).rank(target)
    if rank == _NO_RULE:
        return None
    plain = target if _PLAIN_TARGET(target) else _normal_target(target)
    for at, (allow, text) in enumerate(rules):
        # Most rules are ruled out by their text before the first `*`, without being compiled.
        possible = any(
            2 * len(pattern) + allow == rank
            and plain.startswith(pattern.partition("*")[0].removesuffix("$"))
            for pattern in _patterns(text, allow=allow)
        )
        if possible and RobotsRules([(allow, text)]).rank(target) == rank:
            return at
    return None


class _Literals:
    """Finds which globs can match a URL, by a literal of each that must occur in it."""

    def __init__(self, globs: list[_Glob]) -> None:
        options = re2.Options()
        options.literal = True
        options.log_errors = False
        self._globs = globs
        self._owners: list[list[int]] = [[]]
        self._set = re2.Set.SearchSet(options)
        # The empty text is found in every URL: without it, RE2 has run out of memory.
        self._set.Add("")
        owners: dict[str, list[int]] = {}
        for at, glob in enumerate(globs):
            literal = glob.literal()
            if literal not in owners:
                owners[literal] = []
                self._set.Add(literal)
                self._owners.append(owners[literal])
            owners[literal].append(at)
        self._set.Compile()

    def possible(self, target: str) -> Iterable[_Glob]:
        """Return the globs whose literal occurs, strongest first; all if RE2 cannot tell."""
        found = self._set.Match(target)
        if not found:
            return self._globs
        if len(found) == 1:
            return ()
        return [self._globs[at] for at in sorted(at for one in found for at in self._owners[one])]


def _rank(glob: _Glob) -> int:
    return glob.rank


def _glob(text: str, rank: int) -> _Glob:
    head, *middle, tail = text.removesuffix("$").split("*")
    return _Glob(rank, head, tuple(middle), tail, text.endswith("$"))


def _patterns(text: str, *, allow: bool) -> list[str]:
    """Return the normalized patterns of a rule."""
    pattern = _normalize_rule(text)
    patterns = [pattern] if pattern else []
    if "$" in text:
        # It may be meant as a character, at the end too.
        plain = text is pattern
        patterns.append(text[:-1] + "%24" if plain else _normalize_rule(text.replace("$", "%24")))
    if allow:
        pages = [each for each in patterns if each.endswith("/index.html")]
        patterns += [page.removesuffix("index.html") + "$" for page in pages]
    return patterns
