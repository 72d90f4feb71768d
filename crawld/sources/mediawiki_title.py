"""Converts between titles of a MediaWiki and the URLs that show them.

Rule 1: a URL names a title only if it shows the current page: the article path without a query,
`index.php/Title`, or `index.php?title=` alone. Old revisions, differences, actions, other skins and
Special pages have no history of their own.
Rule 2: spelling follows the wiki's own rules: underscores are spaces, namespaces have aliases in
any case, the first letter is upper case if the namespace says so.
Rule 3: a text that cannot be a title of this wiki (forbidden characters, another wiki's prefix,
more than 255 bytes) gives None, never an error.

The wiki has the last word: it normalizes requested titles again, and its result is used.

Source: MediaWiki, Manual:Page title, Manual:$wgArticlePath and Manual:Namespace.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from crawld.core.url import canonicalize, split_url
from crawld.core.wiki_title import MAX_TITLE_BYTES, NEVER_IN_TITLE, encode_title, join_spaces
from crawld.errors import InvalidUrlError

SPECIAL_SPACE, FILE_SPACE, INTERFACE_SPACE, CATEGORY_SPACE = -1, 6, 8, 14
"""Numbers of namespaces; they and the following are the same in every wiki."""

TEMPLATE_SPACES = frozenset({10, 828})
"""Namespaces of pages that other pages include: templates and modules."""

_MARKS = re.compile("[\u200e\u200f\u202a-\u202e]")
_ILLEGAL = re.compile(
    f"[{NEVER_IN_TITLE}]|~~~|%[0-9A-Fa-f]{{2}}"
    "|&(?:[A-Za-z0-9\\x80-\U0010ffff]+|#[0-9]+|#[xX][0-9A-Fa-f]+);"
    "|(?:^|/)\\.\\.?(?:/|$)"
).search

# Letters that got an upper case in later Unicode versions; MediaWiki does not change them.
_GEORGIAN = re.compile("[\u10d0-\u10ff]")


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace of a wiki.

    Attributes:
        number: 0 for articles, negative for pseudo-namespaces (Special, Media).
        name: its name in this wiki, empty for articles.
        first_letter: whether the first letter of a title is always upper case.
    """

    number: int
    name: str
    first_letter: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TitleRules:
    """How one wiki spells its titles and URLs.

    Attributes:
        article_path: path of an article, with `$1` for its title.
        script: path of index.php.
        namespaces: by number.
        names: number of a namespace by each of its lower-case names and aliases.
        interwiki: lower-case prefixes of other wikis.
        main_page: title of the page shown at `/`, None if `/` is not a page of the wiki.
    """

    article_path: str
    script: str
    namespaces: Mapping[int, Namespace]
    names: Mapping[str, int]
    interwiki: frozenset[str] = field(default_factory=frozenset)
    main_page: str | None = None

    def title_of(self, url: str) -> str | None:
        """Return the title that a canonical URL shows; None if it shows none."""
        path, _, query = split_url(url).target.partition("?")
        if path == "/" and not query and self.main_page:
            return self.normalize(self.main_page)
        written = self._written(path, query)
        return None if written is None else self.normalize(written)

    def serves(self, url: str) -> bool:
        """Whether a canonical URL is served by the wiki: a page, or a view of one."""
        path = split_url(url).target.partition("?")[0]
        folder = self.script.rpartition("/")[0]
        return (
            _filled(self.article_path, path) is not None
            or f"{path}/".startswith(f"{self.script}/")
            or (path.startswith(f"{folder}/") and ".php" in path)
        )

    def namespace_of(self, title: str) -> int:
        """Return the namespace number of a title in this wiki's spelling."""
        return self._split(title)[0] or 0

    def talk_of(self, title: str) -> str | None:
        """Return the title of the discussion of a page; None: of discussions, and without one."""
        number, name = self._split(title)
        talk = self.namespaces.get(number + 1) if number is not None and number >= 0 else None
        return f"{talk.name}:{name}" if talk is not None and talk.number % 2 == 1 else None

    def subject_of(self, title: str) -> str | None:
        """Return the title of the page that a title discusses; None: it is no discussion."""
        number, name = self._split(title)
        if number is None or number < 0 or number % 2 == 0:
            return None
        space = self.namespaces.get(number - 1)
        return f"{space.name}:{name}" if space is not None and space.name else name

    def _written(self, path: str, query: str) -> str | None:
        if path == self.script:
            return _of_query(query)
        if query:
            return None
        for form in (self.article_path, f"{self.script}/$1"):
            if (title := _filled(form, path)) is not None:
                return _decoded(title)
        return None

    def url_of(self, title: str, origin: str) -> str | None:
        """Return the canonical URL of a title, None if no URL can hold it."""
        try:
            return canonicalize(origin + self.article_path.replace("$1", encode_title(title)))
        except InvalidUrlError:
            return None

    def normalize(self, written: str) -> str | None:
        """Return a title in this wiki's spelling, None if it cannot be one of its pages."""
        text = unicodedata.normalize("NFC", _MARKS.sub("", written))
        text = join_spaces(text).removeprefix(":").strip(" ")
        number, name = self._split(text)
        if number is None or number < 0 or not name or name.startswith(":") or _ILLEGAL(name):
            return None
        space = self.namespaces.get(number, Namespace(number, ""))
        if space.first_letter:
            name = _capitalised(name)
        if len(name.encode("utf-8", "replace")) > MAX_TITLE_BYTES:
            return None
        return f"{space.name}:{name}" if space.name else name

    def invalid_reason(self, written: str) -> str | None:
        """Return why a text cannot be the title of a page of this wiki; None: it can."""
        if self.normalize(written) is not None:
            return None
        text = join_spaces(_MARKS.sub("", written)).removeprefix(":").strip(" ")
        if not text:
            return "it is empty"
        if (prefix := self.interwiki_prefix(written)) is not None:
            return f"{prefix}: names another wiki"
        number, name = self._split(text)
        if number is not None and number < 0:
            return "a special page has no history and is not mirrored"
        if not name or name.startswith(":"):
            return "it has a namespace and no name"
        if illegal := _ILLEGAL(name):
            return f"a title cannot contain {illegal[0]!r}"
        return f"it is longer than {MAX_TITLE_BYTES} bytes"

    def interwiki_prefix(self, written: str) -> str | None:
        """Return the prefix of another wiki that a title begins with, None if it has none."""
        text = join_spaces(_MARKS.sub("", written)).removeprefix(":").strip(" ")
        prefix, colon, _ = text.partition(":")
        folded = prefix.strip(" ").lower()
        is_other = bool(colon) and folded not in self.names and folded in self.interwiki
        return folded if is_other else None

    def _split(self, text: str) -> tuple[int | None, str]:
        """Return namespace and rest of a title; the namespace is None for another wiki's prefix."""
        prefix, colon, rest = text.partition(":")
        folded = prefix.strip(" ").lower()
        if not colon or not folded:
            return 0, text
        if folded in self.names:
            return self.names[folded], rest.strip(" ")
        return (None, "") if folded in self.interwiki else (0, text)


def _filled(form: str, path: str) -> str | None:
    """Return the part of a path that matches `$1` of a form; None if the path lacks the form."""
    before, _, after = form.partition("$1")
    fits = len(path) > len(before) + len(after)
    if fits and path.startswith(before) and path.endswith(after):
        return path[len(before) : len(path) - len(after)]
    return None


def _of_query(query: str) -> str | None:
    try:
        given = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=8)
    except ValueError:
        return None
    named = dict(given)
    if len(named) != len(given) or named.keys() - {"title", "action"}:
        return None
    return named.get("title") if named.get("action", "view") == "view" else None


def _decoded(text: str) -> str | None:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return None


def _capitalised(name: str) -> str:
    first = name[0]
    upper = first.upper()
    # Only one letter may replace one letter: "ß" stays as it is.
    if len(upper) != 1 or _GEORGIAN.match(first):
        return name
    return upper + name[1:]
