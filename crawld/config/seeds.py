"""Reads the seeds of a site, from the config, a file of URLs, a file of titles; and wiki titles.

Files are read line by line and never loaded whole: a list of all titles of a large wiki has
millions. A bad line is a value (`BadSeed`) with its position, so that it neither hides others nor
stops a crawl.

Titles become URLs by the rules of `core.wiki_title`. The case of the first letter stays, because
not every wiki changes it.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from crawld.config.site import SiteConfig
from crawld.core.url import canonicalize, canonicalize_given, hide_credentials
from crawld.core.wiki_title import MAX_TITLE_BYTES, NEVER_IN_TITLE, encode_title, join_spaces
from crawld.errors import ConfigError, InvalidUrlError

MAX_LINE_BYTES = 65_536

MAX_TITLE_CHARS = 1_000
"""Characters of a title that are kept; a title has at most 255 bytes besides its namespace."""

_NO_TITLE = re.compile(f"[{NEVER_IN_TITLE}]")


@dataclass(frozen=True, slots=True)
class Seed:
    """A URL to start from.

    Attributes:
        url: canonical URL.
        source: its key or file.
        line: its line in the file, from 1; for `seeds` its index in the list, from 0.
    """

    url: str
    source: str
    line: int


@dataclass(frozen=True, slots=True)
class BadSeed:
    """A line that is not a valid seed, with the reason; other fields as in `Seed`."""

    text: str
    reason: str
    source: str
    line: int


def title_path(title: str) -> str:
    """Return a page title, as people write it or as in dumps, as part of a URL path.

    Raises:
        InvalidUrlError: no wiki page can have this title.
    """
    folded = join_spaces(title)
    if not folded:
        raise InvalidUrlError("the title is empty")
    if bad := _NO_TITLE.search(folded):
        raise InvalidUrlError(f"a title cannot contain {bad[0]!r}")
    if len(folded.encode()) > MAX_TITLE_BYTES:
        raise InvalidUrlError(f"a title cannot be longer than {MAX_TITLE_BYTES} bytes")
    if any(part in (".", "..") for part in folded.split("/")):
        raise InvalidUrlError("a title cannot contain the relative path . or ..")
    return encode_title(folded)


def read_seeds(site: SiteConfig, *, max_lines: int | None = None) -> Iterator[Seed | BadSeed]:
    """Yield the seeds of a site: its list, its file of URLs, its file of titles.

    At most `max_lines` lines of each file are read; None: all.

    Raises:
        ConfigError: a file cannot be read.
    """
    for index, text in enumerate(site.seeds):
        yield seed_of(text.strip(), "seeds", index)
    if site.seeds_file is not None:
        for line, text in islice(text_lines(site.seeds_file, "seeds_file"), max_lines):
            yield seed_of(text, str(site.seeds_file), line)
    if site.titles_file is not None and site.title_url is not None:
        for line, text in islice(text_lines(site.titles_file, "titles_file"), max_lines):
            yield title_seed(text, site, str(site.titles_file), line)


def read_wiki_titles(site: SiteConfig) -> Iterator[str]:
    """Yield the titles that the operator listed for a part of a wiki, as written.

    Raises:
        ConfigError: the file cannot be read.
    """
    yield from site.wiki_titles
    if site.lists_titles and site.titles_file is not None:
        for _, text in text_lines(site.titles_file, "titles_file"):
            yield text[:MAX_TITLE_CHARS]


def seed_of(text: str, source: str, line: int) -> Seed | BadSeed:
    """Return the seed of a URL as a person writes it."""
    try:
        return Seed(canonicalize_given(text), source, line)
    except InvalidUrlError as error:
        return BadSeed(_short(hide_credentials(text)), error.message, source, line)


def title_seed(title: str, site: SiteConfig, source: str, line: int) -> Seed | BadSeed:
    """Return the seed of a title, by the `title_url` of a site."""
    try:
        url = (site.title_url or "").replace("{title}", title_path(title))
        return Seed(canonicalize(url), source, line)
    except InvalidUrlError as error:
        return BadSeed(_short(title), error.message, source, line)


def _short(text: str, length: int = 80) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def text_lines(path: Path, key: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of lines that are neither empty nor comments.

    Undecodable bytes become U+FFFD, which neither a URL's host nor a title may contain.
    """
    try:
        # Reading a named pipe without a writer would block forever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{key}: {path} is not a regular file", hint="name a text file")
        with path.open("rb") as file:
            number = 0
            while raw := file.readline(MAX_LINE_BYTES):
                number += 1
                while not raw.endswith(b"\n") and (rest := file.readline(MAX_LINE_BYTES)):
                    raw = (
                        raw[:MAX_LINE_BYTES] + rest[-1:]
                    )  # too long for a seed: keep only its start
                text = raw.decode("utf-8", "replace").strip()
                if number == 1:
                    text = text.removeprefix("\ufeff")
                if text and not text.startswith("#"):
                    yield number, text
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(
            f"{key}: cannot read {path}: {reason}",
            hint="check the path; it is relative to the config",
        ) from None
