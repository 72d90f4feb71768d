"""Attribution of a copy: license and revision, read from the page itself.

CC BY-SA requires a copy to name its authors, source and license. A link to the page history is
enough to name the authors of a wiki page (Wikimedia Foundation, Terms of Use, section 7).
Everything is read from the stored page, without requests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from crawld.core.content.markup import Attribute, MarkupText, StartTag, attributes_of, start_tags
from crawld.core.content.references import attribute_value
from crawld.core.url import resolver

HEAD_CHARACTERS = 65_536
"""Characters of a page that are searched: its head."""

# Fixed strings in lower-cased text: a case-insensitive pattern takes twenty times as long.
_LICENSE_SIGNS = tuple(
    f"rel={quote}{rel}" for rel in ("license", "copyright") for quote in ('"', "'", "")
)
_MEDIAWIKI_SIGN = 'content="mediawiki'
_REVISION = re.compile(r"\"wgRevisionId\":([0-9]{1,15})[,}]")
_COMMONS = re.compile(
    r"https?://creativecommons\.org/(?:licenses/([a-z-]+)/([0-9.]+)|publicdomain/(zero|mark))",
    re.IGNORECASE,
)
_LINK = frozenset({"link"})


@dataclass(frozen=True, slots=True)
class Attribution:
    """License and authors of a copy.

    Attributes:
        revision_id: the wiki revision of the copy.
        license: name of the license, or the host of its URL.
        license_url: URL of the license.
        history_url: page history, which names the authors.
    """

    revision_id: int | None = None
    license: str | None = None
    license_url: str | None = None
    history_url: str | None = None


def read_attribution(url: str, text: str, revision_id: int | None) -> Attribution:
    """Return the attribution of a page, decoded or as latin-1.

    `revision_id` is its revision if the API of the wiki reported it.
    """
    head = text[:HEAD_CHARACTERS]
    lowered = head.lower()
    licensed = any(sign in lowered for sign in _LICENSE_SIGNS)
    license_url = _license_url(url, head) if licensed else None
    history_url = None
    if _MEDIAWIKI_SIGN in lowered:
        history_url = f"{url}{'&' if '?' in url else '?'}action=history"
        shown = _REVISION.search(head)
        if shown is not None and int(shown[1]):
            revision_id = int(shown[1])
    return Attribution(
        revision_id, license_name(license_url) if license_url else None, license_url, history_url
    )


def _license_url(url: str, head: str) -> str | None:
    for tag in start_tags(head, only=_LINK):
        if not isinstance(tag, StartTag) or tag.name not in _LINK:
            continue
        attributes = attributes_of(head, tag)
        rels = _value(head, attributes.get("rel")).lower().split()
        if "license" in rels or "copyright" in rels:
            return resolver(url)(_value(head, attributes.get("href")))
    return None


def _value(text: str, attribute: Attribute | None) -> str:
    return attribute_value(MarkupText(text, None), attribute) if attribute is not None else ""


def license_name(url: str) -> str:
    """Return the short name of a license by its URL.

    >>> license_name("https://creativecommons.org/licenses/by-sa/4.0/")
    'CC BY-SA 4.0'
    """
    match = _COMMONS.match(url)
    if match is None:
        return url.partition("://")[2].partition("/")[0]
    if match[3]:
        return "CC0" if match[3].lower() == "zero" else "Public Domain"
    return f"CC {match[1].upper()} {match[2]}"
