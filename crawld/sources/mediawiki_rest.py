"""Other forms of a MediaWiki page: the HTML of its REST interface (Parsoid), and the mobile view.

Parsoid's HTML is the article without the skin: no menus, no login links, no scripts. Its links are
relative to a base element, and it names its own style sheets, so that a copy looks right.

Rule 1: only titles whose text is the page have a Parsoid form. A category, a file and a page of the
wiki's interface show lists, images and messages that this form lacks: they keep the skin.
Rule 2: a redirect of the wiki is a redirect: the interface answers 3xx to another title of its own
(since 1.40), or 200 with a `mw:PageProp/redirect` link (before).
Rule 3: all forms of a page have one URL, that of the article path.

Source: MediaWiki, API:REST API (`/page/{title}/html`); Specs/HTML (`mw:PageProp/redirect`);
Extension:MobileFrontend (`useformat`).
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from crawld.core.content.references import linked_href
from crawld.core.url import resolver, split_url
from crawld.sources.mediawiki_title import CATEGORY_SPACE, FILE_SPACE, INTERFACE_SPACE, TitleRules

SKIN_SPACES = frozenset({FILE_SPACE, INTERFACE_SPACE, CATEGORY_SPACE})
"""Namespaces of files, interface and categories, whose pages are more than their text."""

MAX_HEAD_BYTES = 65_536
"""Bytes of a page that are searched for its redirect."""

_REDIRECT = "mw:PageProp/redirect"


def parsoid_url(url: str, rules: TitleRules) -> str | None:
    """Return the URL of a page's Parsoid HTML; None if it has none."""
    title = rules.title_of(url)
    if title is None or rules.namespace_of(title) in SKIN_SPACES:
        return None
    name = quote(title.replace(" ", "_"), safe="")
    return f"{split_url(url).origin}{_folder(rules)}{name}/html"


def mobile_url(url: str, rules: TitleRules) -> str | None:
    """Return the URL of a page's mobile view; None if it is no page of the wiki."""
    if rules.title_of(url) is None:
        return None
    return f"{url}{'&' if '?' in url else '?'}useformat=mobile"


def redirect_of(
    url: str, rules: TitleRules, status: int, location: str | None, body: bytes
) -> str | None:
    """Return the page that the Parsoid form of `url` redirects to; None if it does not.

    Args:
        status: of the response.
        location: its header.
        body: its body.
    """
    if 300 <= status < 400 and location is not None:
        asked = resolver(url)(parsoid_url(url, rules) or url)
        return _page_of(location, asked, rules) if asked else None
    if status != 200 or _REDIRECT.encode() not in body[:MAX_HEAD_BYTES]:
        return None
    href = linked_href(body[:MAX_HEAD_BYTES].decode("utf-8", "replace"), {_REDIRECT.lower()})
    base = resolver(url)(rules.article_path.replace("$1", ""))
    return resolver(base)(href) if base and href else None


def parsoid_revision(body: bytes) -> int | None:
    """Return the revision of a Parsoid body, None if it does not name it."""
    start = body.find(b'about="', 0, 2_000) + len(b'about="')
    about = body[start : start + 2_000].partition(b'"')[0]
    number = about.rpartition(b"/revision/")[2]
    known = start >= len(b'about="') and number.isdigit() and len(number) <= 18
    return int(number) or None if known else None


def _folder(rules: TitleRules) -> str:
    return rules.script.rpartition("/")[0] + "/rest.php/v1/page/"


def _page_of(location: str, base: str, rules: TitleRules) -> str | None:
    """Return the page of a redirect's target; targets outside of the interface stay as they are."""
    target = resolver(base)(location)
    if target is None:
        return None
    origin = split_url(target).origin
    path = target.removeprefix(origin).partition("?")[0]
    name, slash, form = path.removeprefix(_folder(rules)).partition("/")
    if not path.startswith(_folder(rules)) or (slash, form) != ("/", "html"):
        return target
    title = rules.normalize(unquote(name, errors="replace"))
    return None if title is None else rules.url_of(title, origin)
