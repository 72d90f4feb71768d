"""The language of a text, detected from the text itself (extra `language`)."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

LEAST_CHARACTERS: Final = 40
"""A shorter text has no language that can be told."""

MOST_CHARACTERS: Final = 5_000
"""Characters read: enough for certainty, within 2 ms."""

LEAST_CONFIDENCE: Final = 0.9

_NO_WORDS: Final = re.compile(r"[\s\d]+")


@functools.cache
def _identifier() -> LanguageIdentifier:
    """Return the model of languages, which a process reads once: a second and 70 MB."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


class LanguageDetector:
    """Detects languages.

    Raises:
        ModuleNotFoundError: the extra `language` is not installed.
    """

    def __init__(self) -> None:
        self._identifier = _identifier()

    def language_of(self, text: str) -> str:
        """Return the ISO 639-1 code of the language of a text; empty: it cannot be told."""
        # Numbers, of tables and lists of pages, speak no language, but count for the detector.
        read = " ".join(_NO_WORDS.split(text[: 4 * MOST_CHARACTERS]))[:MOST_CHARACTERS]
        if len(read) < LEAST_CHARACTERS:
            return ""
        language, confidence = self._identifier.classify(read)
        return str(language) if confidence >= LEAST_CONFIDENCE else ""
