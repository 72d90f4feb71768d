"""The language of a text, by its words."""

import pytest

from crawld.core.content.language import LanguageDetector

GERMAN = "Nur Text steht auf der Seite / über Flüsse, Häfen und die Brücken zwischen ihnen."
ENGLISH = "This is the page / about rivers, harbours and bridges found in this area."


@pytest.fixture(scope="module")
def detector():
    return LanguageDetector()


@pytest.mark.parametrize(("text", "language"), [(GERMAN, "de"), (ENGLISH, "en")])
@pytest.mark.parametrize("numbers", [0, 100, 1_000])
def test_numbers_do_not_hide_a_language(detector, text, language, numbers):
    listed = " ".join(map(str, range(numbers)))
    assert detector.language_of(f"{text} {listed}") == language


def test_numbers_alone_have_no_language(detector):
    assert detector.language_of(" ".join(map(str, range(200)))) == ""
