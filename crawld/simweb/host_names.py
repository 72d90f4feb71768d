"""Generate unique host names made of syllables for the simulated web of replicas."""

from __future__ import annotations

import numpy as np

_ONSETS = ("b", "br", "c", "d", "f", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "pl", "r", "s")
_ENDS = ("a", "e", "i", "o", "u", "an", "en", "er", "in", "on", "ar", "el", "or", "us", "ix", "et")
_TOP_LEVELS = ("com", "net", "org", "de", "br", "fr", "it", "info", "co.uk", "com.br")
_TOP_LEVEL_SHARES = (0.42, 0.1, 0.1, 0.08, 0.06, 0.06, 0.05, 0.05, 0.04, 0.04)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class HostNames:
    """Draws random host names and never returns the same one twice."""

    def __init__(self, rng: np.random.Generator) -> None:
        """Make a vocabulary of 5,000 words."""
        self._rng = rng
        self._taken: set[str] = set()
        self._words = [self._new_word() for _ in range(5_000)]

    def _new_word(self) -> str:
        count = int(self._rng.integers(2, 4))
        onsets = self._rng.integers(len(_ONSETS), size=count)
        ends = self._rng.integers(len(_ENDS), size=count)
        return "".join(_ONSETS[a] + _ENDS[b] for a, b in zip(onsets, ends, strict=True))

    def word(self) -> str:
        """Return a word; early words of the vocabulary are more frequent."""
        return self._words[int(len(self._words) * self._rng.random() ** 2)]

    def top_level(self) -> str:
        """Return a top-level domain."""
        return _TOP_LEVELS[int(self._rng.choice(len(_TOP_LEVELS), p=_TOP_LEVEL_SHARES))]

    def claim(self, name: str) -> str:
        """Return the name, with a number after its first label if it is taken."""
        label, _, rest = name.partition(".")
        number = 1
        while name in self._taken:
            number += 1
            name = f"{label}{number}.{rest}"
        self._taken.add(name)
        return name

    def domain(self) -> str:
        """Return a new domain of one or two words."""
        label = self.word()
        if self._rng.random() < 0.7:
            label += ("", "-")[int(self._rng.random() < 0.3)] + self.word()
        return self.claim(f"{label}.{self.top_level()}")

    def other_top_level(self, domain: str) -> str:
        """Return the first label of a domain under another top-level domain."""
        label = domain.partition(".")[0]
        return self.claim(f"{label}.{self.top_level()}")

    def misspelled(self, domain: str) -> str:
        """Return a domain that differs by one letter or has one more word."""
        label, _, rest = domain.partition(".")
        if self._rng.random() < 0.5:
            return self.claim(f"{label}-{self.word()}.{rest}")
        at = int(self._rng.integers(len(label)))
        letter = _LETTERS[int(self._rng.integers(26))]
        return self.claim(f"{label[:at]}{letter}{label[at + 1 :]}.{self.top_level()}")
