"""The plug-in that `crawld plugins new` writes: it works as it is, and has a test."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from crawld.config.plugin import is_plugin_name
from crawld.errors import OperatorError
from crawld.plugins import API

PLUGIN: Final = '''"""{name}: a plug-in of crawld. Remove the hooks that you do not need.

It is used if the config has:

    [daemon]
    plugins_dir = "{directory}"

    [[plugin]]
    name = "{name}"
    options = {{ min_words = 5 }}

Every hook and value: crawld/plugins.py; the guide: docs/plugins.md.
"""

from collections.abc import Mapping

from crawld.plugins import KnownPage, PageRequest, Reading, Verdict, hookimpl

CRAWLD_API = {api}

MIN_WORDS = 5


@hookimpl
def configure(options: Mapping[str, object]) -> None:
    """Take the options of the [[plugin]] block; raise to refuse them."""
    global MIN_WORDS
    unknown = set(options) - {{"min_words"}}
    if unknown:
        raise ValueError(f"unknown options {{sorted(unknown)}}; known is min_words")
    MIN_WORDS = int(str(options.get("min_words", MIN_WORDS)))


@hookimpl
def prepare_request(page: KnownPage, request: PageRequest) -> PageRequest | None:
    """Request stage: ask for English pages."""
    return request.with_header("Accept-Language", "en")


@hookimpl
def read_response(reading: Reading) -> Verdict | None:
    """Response stage: do not store nearly empty pages, and keep the number of words."""
    words = len(reading.text.split())
    if words < MIN_WORDS:
        return Verdict(store=False, why=f"it has {{words}} words")
    return Verdict(tags={{"words": str(words)}})


@hookimpl
def weigh_page(url: str) -> float | None:
    """Queue stage: the start page of a host is worth ten others."""
    return 10.0 if url.count("/") == 3 and url.endswith("/") else None
'''

TEST: Final = '''"""Tests of {name}; run them with: pytest {test}"""

from pathlib import Path

from crawld.plugin_host.examples import page_facts, reading
from crawld.plugin_host.trial import found_at, try_file
from crawld.plugins import PageRequest

FILE = Path(__file__).with_name("{name}.py")
plugin = found_at(FILE).load()


def test_it_loads_and_answers_as_described():
    assert try_file(FILE, {{"min_words": 5}}).problems == []


def test_wrong_options_are_refused():
    (problem,) = try_file(FILE, {{"min_word": 5}}).problems
    assert "known is min_words" in problem


def test_it_asks_for_english():
    page = page_facts()
    request = plugin.prepare_request(page, PageRequest(page.url))
    assert ("Accept-Language", "en") in request.headers


def test_a_page_without_text_is_not_stored():
    assert plugin.read_response(reading("<p>Please wait</p>")).store is False


def test_the_number_of_words_is_kept():
    verdict = plugin.read_response(reading("<p>one two three four five six</p>"))
    assert verdict.store
    assert verdict.tags == {{"words": "6"}}


def test_start_pages_weigh_more():
    assert plugin.weigh_page("https://www.example.org/") == 10.0
    assert plugin.weigh_page("https://www.example.org/about") is None
'''


def write_skeleton(name: str, directory: Path) -> tuple[Path, Path]:
    """Write a plug-in and its test; return both paths.

    Raises:
        OperatorError: the name is not possible, or a file exists or cannot be written.
    """
    if not is_plugin_name(name) or name.startswith("test_"):
        raise OperatorError(
            f"{name!r} cannot be the name of a plug-in",
            hint="use up to 40 small letters, digits and underscores, a letter first",
        )
    plugin, test = directory / f"{name}.py", directory / f"test_{name}.py"
    facts = {"name": name, "directory": directory, "api": API, "test": test}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, text in ((plugin, PLUGIN), (test, TEST)):
            with path.open("x", encoding="utf-8") as file:
                file.write(text.format(**facts))
    except FileExistsError as error:
        raise OperatorError(
            f"{error.filename} exists already", hint="choose another name"
        ) from None
    except OSError as error:
        raise OperatorError(f"{directory} cannot be written: {error.strerror}") from None
    return plugin, test
