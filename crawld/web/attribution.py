"""Attribution of a copy: license and revision, read from the page or told by its wiki.

CC BY-SA requires a copy to name its authors, source and license. A link to the page history is
enough to name the authors of a wiki page (Wikimedia Foundation, Terms of Use, section 7).
Everything is read from the stored page and the wiki's stored description, without requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from crawld.core.content.references import linked_href
from crawld.core.url import resolver
from crawld.sources.mediawiki_site import WikiFacts, shown_revision

HEAD_CHARACTERS = 65_536
"""Characters of a page that are searched: its head."""

# Fixed strings in lower-cased text: a case-insensitive pattern takes twenty times as long.
_LICENSE_SIGNS = tuple(
    f"rel={quote}{rel}" for rel in ("license", "copyright") for quote in ('"', "'", "")
)
_MEDIAWIKI_SIGNS = ('content="mediawiki', 'property="mw:htmlversion"')
_MAX_LICENSE_CHARACTERS = 60
UNNAMED = "Licence"
_NAME_SIGNS = re.compile(
    r"\b(?:CC|Creative Commons|BY-SA|GNU|GFDL|A?GPL|LGPL|MIT|Apache|BSD|ODbL|Public Domain"
    r"|licen[cs]e|copyright)\b",
    re.IGNORECASE,
)
_KNOWN = (
    ("gnu.org/copyleft/fdl", "GFDL"),
    ("gnu.org/licenses/fdl", "GFDL"),
    ("gnu.org/licenses/gpl", "GPL"),
    ("apache.org/licenses/license-2.0", "Apache 2.0"),
    ("opensource.org/licenses/mit", "MIT"),
    ("opensource.org/license/mit", "MIT"),
    ("opendatacommons.org/licenses/odbl", "ODbL"),
)
_COMMONS = re.compile(
    r"https?://creativecommons\.org/(?:licenses/([a-z-]+)/([0-9.]+)|publicdomain/(zero|mark))",
    re.IGNORECASE,
)
_LICENSE_RELS = frozenset({"license", "copyright"})


@dataclass(frozen=True, slots=True)
class Attribution:
    """License and authors of a copy.

    Attributes:
        revision_id: the wiki revision of the copy.
        license: name of the license, "Licence" if it is not known.
        license_url: URL of the license.
        history_url: page history, which names the authors.
    """

    revision_id: int | None = None
    license: str | None = None
    license_url: str | None = None
    history_url: str | None = None


FindWiki: TypeAlias = Callable[[], WikiFacts | None]
"""Returns the wiki that a page belongs to; None: it is not known to be one's."""


def _no_wiki() -> WikiFacts | None:
    return None


def read_attribution(
    url: str, text: str, revision_id: int | None, find_wiki: FindWiki = _no_wiki
) -> Attribution:
    """Return the attribution of a page, decoded or as latin-1.

    Args:
        revision_id: its revision if the API of the wiki reported it.
        find_wiki: asked only if the page names no license, or one without a known name.
    """
    head = text[:HEAD_CHARACTERS]
    lowered = head.lower()
    licensed = any(sign in lowered for sign in _LICENSE_SIGNS)
    license_url = _license_url(url, head) if licensed else None
    wiki = None
    if license_url is None or not _COMMONS.match(license_url):
        wiki = find_wiki()
        license_url = license_url or (wiki.license_url if wiki is not None else None) or None
    history_url = None
    if any(sign in lowered for sign in _MEDIAWIKI_SIGNS):
        history_url = f"{url}{'&' if '?' in url else '?'}action=history"
        revision_id = shown_revision(head.encode("latin-1", "replace")) or revision_id
    name = license_name(license_url, wiki) if license_url else None
    return Attribution(revision_id, name, license_url, history_url)


def _license_url(url: str, head: str) -> str | None:
    href = linked_href(head, _LICENSE_RELS)
    return resolver(url)(href) if href is not None else None


def license_name(url: str, wiki: WikiFacts | None = None) -> str:
    """Return the short name of a license by its URL, or as a wiki that uses it calls it.

    Some wikis give their own name or host there: that is not the name of a license.

    >>> license_name("https://creativecommons.org/licenses/by-sa/4.0/")
    'CC BY-SA 4.0'
    >>> license_name("https://www.gnu.org/copyleft/fdl.html"), license_name("https://a.org/legal")
    ('GFDL', 'Licence')
    """
    match = _COMMONS.match(url)
    if match is None:
        told = wiki.license if wiki is not None and wiki.license_url == url else ""
        if _NAME_SIGNS.search(told):
            return told[:_MAX_LICENSE_CHARACTERS]
        place = url.partition("://")[2].removeprefix("www.").lower()
        return next((name for start, name in _KNOWN if place.startswith(start)), UNNAMED)
    if match[3]:
        return "CC0" if match[3].lower() == "zero" else "Public Domain"
    return f"CC {match[1].upper()} {match[2]}"
