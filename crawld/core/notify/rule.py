"""Decides which events a rule of notification reports.

The text of a change costs a comparison of two copies, so `RuleFilter.may_want` first decides all
that needs none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import re2

from crawld.core.notify.change_text import ChangeText
from crawld.errors import ConfigError

MAX_PATTERN_CHARACTERS = 10_000
_MAX_PATTERN_BYTES = 2**20

Search = Callable[[str], object]


def search_pattern(pattern: str) -> Search:
    """Return the search of a regular expression, linear in the text (RE2).

    Raises:
        ConfigError: it is empty or does not compile.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_PATTERN_BYTES
    if not pattern or len(pattern) > MAX_PATTERN_CHARACTERS:
        raise ConfigError(
            f"is empty or longer than {MAX_PATTERN_CHARACTERS:,} characters", hint="fix or unset it"
        )
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ConfigError(
            f"does not compile: {text}", hint="RE2 has no look-around and no back-references"
        ) from None
    search: Search = compiled.search
    return search


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFilter:
    """What one rule reports.

    Attributes:
        sites: names of the sites; empty: all.
        admits: whether the rule covers the page of a canonical URL.
        kinds: kinds of events.
        min_share: least share of the text that a change differs in, [0, 1].
        min_words: least number of words that a change adds or removes.
        matches: searched in what is added and in the title; None: no condition.
    """

    sites: frozenset[str]
    admits: Callable[[str], bool]
    kinds: frozenset[str]
    min_share: float = 0.0
    min_words: int = 0
    matches: Search | None = None

    @property
    def needs_text(self) -> bool:
        """Whether a change must be read to decide about it."""
        return self.min_words > 0 or self.matches is not None

    def may_want(self, kind: str, site: str, url: str, difference: float | None) -> bool:
        """Whether the rule reports an event, as far as it can be said without its text.

        Args:
            url: canonical.
            difference: share of the text, [0, 1]; None: not measured.
        """
        if kind not in self.kinds or (self.sites and site not in self.sites):
            return False
        if kind == "changed" and difference is not None and difference < self.min_share:
            return False
        return self.admits(url)

    def wants(self, kind: str, title: str, change: ChangeText | None) -> bool:
        """Whether the rule reports an event that it may want.

        A change whose text is unknown, since its copies are too large or no longer kept, has as
        many words as any.
        """
        if kind == "changed" and change is not None and change.words < self.min_words:
            return False
        if self.matches is None:
            return True
        return bool(self.matches(title)) or (
            change is not None and bool(self.matches(change.added_text))
        )
