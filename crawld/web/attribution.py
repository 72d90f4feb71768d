"""Who is to be named beside a copy: what the page itself says of its licence and revision.

CC BY-SA asks whoever passes a text on to name its authors, its source and its licence. A wiki names
the authors in the history of the page, so a link to it does (Wikimedia Foundation, Terms of Use,
section 7). Everything is read from the stored page, by its signs: nothing is asked of anybody.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from crawld.core.content.markup import Attribute, MarkupText, StartTag, attributes_of, start_tags
from crawld.core.content.references import attribute_value
from crawld.core.url import resolver

HEAD_CHARACTERS = 65_536
"""How far a page is read for its signs: its head."""

# Looked for as they are written: a pattern that ignores case takes twenty times as long.
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
    """What a copy says of its original.

    Attributes:
        revision_id: the wiki's number of the revision shown.
        licence: its name, or the host of its address.
        licence_url: where it is written.
        history_url: where the authors are named.
    """

    revision_id: int | None = None
    licence: str | None = None
    licence_url: str | None = None
    history_url: str | None = None


def read_attribution(url: str, text: str, revision_id: int | None) -> Attribution:
    """Return what a page says of itself.

    Args:
        url: its canonical URL.
        text: the page, decoded or one character a byte.
        revision_id: its revision, where that is known from the wiki's API.
    """
    head = text[:HEAD_CHARACTERS]
    lowered = head.lower()
    licensed = any(sign in lowered for sign in _LICENSE_SIGNS)
    licence_url = _license_url(url, head) if licensed else None
    history_url = None
    if _MEDIAWIKI_SIGN in lowered:
        history_url = f"{url}{'&' if '?' in url else '?'}action=history"
        shown = _REVISION.search(head)
        if shown is not None and int(shown[1]):
            revision_id = int(shown[1])
    return Attribution(
        revision_id, license_name(licence_url) if licence_url else None, licence_url, history_url
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
    """Return the short name of a licence by its address.

    >>> licence_name("https://creativecommons.org/licenses/by-sa/4.0/")
    'CC BY-SA 4.0'
    """
    match = _COMMONS.match(url)
    if match is None:
        return url.partition("://")[2].partition("/")[0]
    if match[3]:
        return "CC0" if match[3].lower() == "zero" else "Public Domain"
    return f"CC {match[1].upper()} {match[2]}"
