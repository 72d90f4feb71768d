"""The language of a text, detected from the text itself (extra `language`)."""

from __future__ import annotations

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


class LanguageDetector:
    """Detects languages; making one takes a second and 50 MB, so a process makes one at most.

    Raises:
        ModuleNotFoundError: the extra `language` is not installed.
    """

    def __init__(self) -> None:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier: LanguageIdentifier = LanguageIdentifier.from_model_file(
            MODEL_FILE, norm_probs=True
        )

    def language_of(self, text: str) -> str:
        """Return the ISO 639-1 code of the language of a text; empty: it cannot be told."""
        # Numbers, of tables and lists of pages, speak no language, but count for the detector.
        read = " ".join(_NO_WORDS.split(text[: 4 * MOST_CHARACTERS]))[:MOST_CHARACTERS]
        if len(read) < LEAST_CHARACTERS:
            return ""
        language, confidence = self._identifier.classify(read)
        return str(language) if confidence >= LEAST_CONFIDENCE else ""
