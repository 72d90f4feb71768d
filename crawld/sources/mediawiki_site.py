"""Detects a MediaWiki from its pages, and reads its `siteinfo`.

A page of a MediaWiki links its API by `EditURI` (Really Simple Discovery). If a skin omits that
link, the generator names the software, and the script URLs show where the API is. Only a `siteinfo`
response proves that it is a wiki.

Nothing is specific to Wikimedia: script path, article path, case of titles, namespaces and their
aliases are read from the wiki.

Source: MediaWiki, API:Siteinfo; Really Simple Discovery 1.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from crawld.core.content.html import ParsedPage
from crawld.core.url import canonicalize, resolve, split_url
from crawld.errors import InvalidUrlError
from crawld.sources.mediawiki_rest import parsoid_revision
from crawld.sources.mediawiki_rows import text_of
from crawld.sources.mediawiki_title import Namespace, TitleRules

MAX_INTERWIKI = 5_000
"""Interwiki prefixes that are kept; the largest known maps have about 2,000."""

MAX_LICENSE_CHARACTERS = 100
"""Characters of a license's name that are kept."""

_REVISION = re.compile(rb'"wgRevisionId":\s*(\d{1,18})\b').search
_API = re.compile(r"/api\.php\d?$").search
_SKINNING = "mediawiki.skinning"
_SCRIPT = re.compile(r"^(.*/)(?:load|index)\.php(\d?)[?/]").match


def find_api(page: ParsedPage, url: str) -> str | None:
    """Return the probable API URL of a page's wiki; None if the page is not of a MediaWiki."""
    if page.edit_uri:
        for linked in resolve(url, [page.edit_uri]):
            address = linked.partition("?")[0]
            if _API(address):
                return address
    loaded = page.requisites()
    if page.generator.startswith("MediaWiki"):
        written: Sequence[str] = (*loaded, *page.links)
    else:  # Parsoid's HTML names no generator
        written = [each for each in loaded if _SKINNING in each]
    home = split_url(url).origin + "/"
    for linked in resolve(url, written):
        if linked.startswith(home) and (found := _SCRIPT(linked)):
            return f"{found[1]}api.php{found[2]}"
    return None


def shown_revision(body: bytes) -> int | None:
    """Return the revision number of a page in any form; None if the page does not contain it."""
    found = _REVISION(body)
    return int(found[1]) or None if found else parsoid_revision(body)


def moved_api_url(api_url: str, location: str) -> str | None:
    """Return the new URL of a redirected API; None if the target is not an API."""
    try:
        target = canonicalize(location, api_url).partition("?")[0]
    except InvalidUrlError:
        return None
    return target if _API(target) and target != api_url else None


SITEINFO: Mapping[str, str] = {
    "meta": "siteinfo",
    "siprop": "general|namespaces|namespacealiases|interwikimap|rightsinfo|statistics",
}
"""The `siteinfo` request."""


@dataclass(frozen=True, slots=True)
class WikiFacts:
    """The needed part of a wiki's `siteinfo`; stored as JSON.

    Attributes:
        generator: software and version.
        server: its canonical server.
        titles: how it spells titles.
        license: name of the license of its texts, "" if it names none.
        license_url: http or https URL of that license, "" if it names none.
        articles: number of its content pages, about; 0: not known.
    """

    generator: str
    server: str
    titles: TitleRules
    license: str = ""
    license_url: str = ""
    articles: int = 0

    def to_json(self) -> str:
        """Return the stored form."""
        titles = self.titles
        return json.dumps(
            {
                "generator": self.generator,
                "server": self.server,
                "article_path": titles.article_path,
                "script": titles.script,
                "namespaces": [
                    [space.number, space.name, space.first_letter]
                    for space in titles.namespaces.values()
                ],
                "names": dict(titles.names),
                "interwiki": sorted(titles.interwiki),
                "main_page": titles.main_page,
                "license": self.license,
                "license_url": self.license_url,
                "articles": self.articles,
            },
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str) -> WikiFacts:
        """Return the facts from their stored form."""
        stored = json.loads(text)
        titles = TitleRules(
            article_path=stored["article_path"],
            script=stored["script"],
            namespaces={row[0]: Namespace(*row) for row in stored["namespaces"]},
            names=stored["names"],
            interwiki=frozenset(stored["interwiki"]),
            main_page=stored["main_page"],
        )
        rights = stored.get("license", ""), stored.get("license_url", "")
        return cls(
            stored["generator"], stored["server"], titles, *rights, stored.get("articles", 0)
        )


def read_siteinfo(query: Mapping[str, object]) -> WikiFacts:
    """Read a `siteinfo` response.

    Raises:
        ValueError: not a response of a MediaWiki; the message says what is missing.
    """
    general = _table(query, "general")
    generator = _text(general, "generator")
    if not generator.startswith("MediaWiki"):
        raise ValueError(f"the generator is {generator[:40]!r}")
    article_path = _path(_text(general, "articlepath"))
    if "$1" not in article_path:
        raise ValueError(f"the article path {article_path[:80]!r} has no $1")
    spaces = _namespaces(_table(query, "namespaces"), _text(general, "case"))
    root = general.get("mainpageisdomainroot")
    titles = TitleRules(
        article_path=article_path,
        script=_path(_text(general, "script")),
        namespaces={space.number: space for space in spaces},
        names=_names(query, spaces),
        interwiki=frozenset(_interwiki(query)),
        main_page=_text(general, "mainpage") if root not in (None, False) else None,
    )
    server = _text(general, "server")
    rights = _rights(query.get("rightsinfo"), server)
    return WikiFacts(generator, server, titles, *rights, _articles(query.get("statistics")))


def _articles(statistics: object) -> int:
    """Return the number of content pages, 0 if the wiki does not tell."""
    articles = statistics.get("articles") if isinstance(statistics, dict) else None
    return max(articles, 0) if isinstance(articles, int) else 0


def _rights(rights: object, server: str) -> tuple[str, str]:
    """Return name and URL of the license; a wiki may name a page of its own."""
    if not isinstance(rights, dict):
        return "", ""
    try:
        base = canonicalize(f"https:{server}/" if server.startswith("//") else f"{server}/")
        url = canonicalize(text_of(rights, "url"), base) if text_of(rights, "url") else ""
    except InvalidUrlError:
        url = ""
    return text_of(rights, "text")[:MAX_LICENSE_CHARACTERS], url


def _namespaces(rows: Mapping[str, object], case: str) -> list[Namespace]:
    spaces = []
    for row in rows.values():
        if isinstance(row, dict) and isinstance(row.get("id"), int):
            name = text_of(row, "name") or text_of(row, "*")
            first_letter = row.get("case", case) != "case-sensitive"
            spaces.append(Namespace(row["id"], name.replace("_", " "), first_letter))
    if not any(space.number == 0 for space in spaces):
        raise ValueError("it has no article namespace")
    return spaces


def _names(query: Mapping[str, object], spaces: list[Namespace]) -> dict[str, int]:
    """Return all names of namespaces; the wiki's own precede aliases and canonical ones."""
    names: dict[str, int] = {}
    for row in _table(query, "namespaces").values():
        if isinstance(row, dict) and isinstance(row.get("id"), int):
            names[text_of(row, "canonical")] = row["id"]
    aliases = query.get("namespacealiases")
    for row in aliases if isinstance(aliases, list) else []:
        if isinstance(row, dict) and isinstance(row.get("id"), int):
            names[text_of(row, "alias") or text_of(row, "*")] = row["id"]
    names |= {space.name: space.number for space in spaces}
    return {name.replace("_", " ").lower(): number for name, number in names.items() if name}


def _interwiki(query: Mapping[str, object]) -> list[str]:
    rows = query.get("interwikimap")
    if not isinstance(rows, list):
        return []
    found = [row.get("prefix") for row in rows if isinstance(row, dict)]
    return [prefix.lower() for prefix in found if isinstance(prefix, str)][:MAX_INTERWIKI]


def _table(query: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = query.get(key)
    if not isinstance(value, dict):
        raise ValueError(f"{key} is missing")
    return value


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"{key} is not a text")
    return value


def _path(address: str) -> str:
    """Return the path of a URL with or without a server, encoded as in a canonical URL."""
    return quote(re.sub(r"^(?:https?:)?//[^/]*", "", address), safe="/%?=&;:@!$*'(),~+")
