"""Rewrites the URLs of a page or a style sheet, and keeps every other byte.

A copy is read at another address than its original. Each URL is resolved against the page (and its
base element), made canonical and passed to `locate`, which returns the address of its copy. Without
a copy the absolute original URL is written, so that every link works.

A copy also loses: the base element's href (URLs are already resolved), content security policies of
meta elements (they name the origins of the original), integrity and crossorigin (they tie the
loaded content to the bytes and headers of the original), ping and preconnections (they would reveal
the reader to the original). `javascript:`, `data:` and other schemes are kept; the server of the
copy must restrict scripts.

Invariants: linear time, and memory of a few times the page, however many URLs it has. A page whose
URLs all stay as written comes back byte for byte. Other bytes are never changed, unless the charset
cannot be edited bytewise (UTF-16, Shift_JIS …); then the result is UTF-8 with a byte order mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TypeVar

from crawld.core.content.markup import (
    Attribute,
    MarkupText,
    escape,
    is_bytewise,
    source_of,
    unescape,
)
from crawld.core.content.references import (
    UrlLocation,
    UrlSyntax,
    attribute_value,
    base_of,
    url_locations,
)
from crawld.core.content.url_kind import UrlKind
from crawld.core.content.url_syntax import (
    css_unescape,
    css_url_spans,
    refresh_url_span,
    srcset_url_spans,
)
from crawld.core.url import resolver

Locate = Callable[[str, UrlKind], str | None]
"""Returns the new address of a canonical URL, None to write the absolute original. An address may
be relative; it is an ASCII URL reference without fragment."""

MAX_NESTING = 2
"""Levels of documents within documents (srcdoc) that are rewritten; deeper ones are emptied."""

# An Enum lookup takes as long as all other work on a link.
_LINK, _CONTACT = UrlKind.LINK, UrlKind.CONTACT

_EMPTY_IS_PAGE = frozenset({UrlKind.LINK, UrlKind.FORM})
"""For these kinds an empty URL refers to the page itself; for others it loads nothing."""

_FRAGMENT_IS_LOCAL = frozenset({UrlKind.IMAGE, UrlKind.FONT})
"""For these kinds a fragment alone refers to the page itself, regardless of its base (CSS Values 4
section 4.5.1; SVG 2 section 16.1.4)."""

_ROOTED = ("/", "http://", "https://")
"""Prefixes of references that mean the same on every page of an origin."""

MAX_REMEMBERED = 4_096
"""URLs of a page whose new address is remembered; more than nearly every page has."""

JOINED_PARTS = 4_096
"""Pieces of a text that are joined at a time: each takes a hundred bytes beside its text."""

_MAX_CACHED_CHARACTERS = 512
"""Longer references are not cached, to keep the cache small."""

K = TypeVar("K")

Edit = tuple[int, int, str]
"""Start, end and replacement."""


def rewrite_html(
    body: bytes,
    page_url: str,
    locate: Locate,
    *,
    charset: str = "utf-8",
    xml: bool = False,
    insert: str = "",
) -> bytes:
    """Return a page with its URLs rewritten.

    Args:
        charset: Python codec to read it with (as stored with the version).
        insert: markup, used as it is, put at the start of the page's body, or at the end if it has
            no body tag. It contains its own styles.

    Raises:
        InvalidUrlError: `page_url` is not a URL.
    """
    source = source_of(body, charset)
    page = _PageRewrite(source, page_url, locate, xml=xml, insert=insert)
    return source.body(page.rewrite())


def rewrite_css(css: bytes, base_url: str, locate: Locate, *, charset: str = "utf-8") -> bytes:
    """Return a style sheet with its URLs rewritten.

    Raises:
        InvalidUrlError: `base_url` is not a URL.
    """
    source = source_of(css, charset)
    addresses = _Addresses(base_url, locate, based=False)
    return source.body(_apply_edits(source.text, _css_edits(source, source.text, addresses)))


def charset_after(charset: str) -> str:
    """Return the charset (a Python codec) in which a rewritten body of a charset is written.

    >>> charset_after("cp1252"), charset_after("utf-16-le")
    ('cp1252', 'utf-8')
    """
    return charset if is_bytewise(charset) else "utf-8"


def _base_url(base: str | None, page_url: str) -> str:
    joined = resolver(page_url)(base) if base else None
    return joined or page_url


def _apply_edits(text: str, edits: Iterable[Edit]) -> str:
    joined: list[str] = []
    parts: list[str] = []
    position = 0
    for start, end, value in edits:
        parts += text[position:start], value
        position = end
        if len(parts) >= JOINED_PARTS:
            joined.append("".join(parts))
            parts.clear()
    if not (joined or parts):
        return text
    return "".join((*joined, *parts, text[position:]))


_resolver = lru_cache(maxsize=256)(resolver)


@lru_cache(maxsize=MAX_REMEMBERED)
def _resolve_rooted(root: str, written: str) -> tuple[str | None, str]:
    """Return the canonical URL and the fragment (with `#`) of a rooted reference.

    Cached: menus repeat on every page, links on many.
    """
    target, sign, fragment = written.partition("#")
    return _resolver(root)(target), sign + fragment


def _make_room(known: dict[K, str | None]) -> None:
    if len(known) >= MAX_REMEMBERED:
        known.clear()


class _Addresses:
    """The new addresses of the URLs of one page; the latest are remembered."""

    def __init__(self, base_url: str, locate: Locate, *, based: bool) -> None:
        self.locate = locate
        self.base_url = base_url
        self.based = based
        self._resolve = resolver(base_url)
        self._root = self._resolve("/") or base_url
        self._known: dict[tuple[str, UrlKind], str | None] = {}

    def of(self, url: str, kind: UrlKind) -> str | None:
        """Return the new address of a URL as written, None to keep it; from the cache if known."""
        key = (url, kind)
        if key not in self._known:
            _make_room(self._known)
            self._known[key] = self.compute(url, kind)
        return self._known[key]

    def compute(self, url: str, kind: UrlKind) -> str | None:
        """Return the new address of a URL as written, None to keep it."""
        if kind is _CONTACT:
            return "data:,"
        written = url.strip("\t\n\f\r ")
        if written.startswith(_ROOTED) and len(written) <= _MAX_CACHED_CHARACTERS:
            absolute, fragment = _resolve_rooted(self._root, written)
        else:
            if not written and kind not in _EMPTY_IS_PAGE:
                return None
            if written[:1] in {"", "#"} and (not self.based or kind in _FRAGMENT_IS_LOCAL):
                return None  # the page itself, at any address
            target, sign, fragment = written.partition("#")
            absolute, fragment = self._resolve(target), sign + fragment
        if absolute is None:
            return None
        return (self.locate(absolute, kind) or absolute) + fragment


class _PageRewrite:
    """The rewrite of one page."""

    def __init__(
        self,
        source: MarkupText,
        page_url: str,
        locate: Locate,
        *,
        xml: bool = False,
        insert: str = "",
        nesting: int = 0,
    ) -> None:
        base = base_of(source, xml=xml)
        self._source = source
        self._xml = xml
        self._insert = insert
        self._nesting = nesting
        self._addresses = _Addresses(_base_url(base, page_url), locate, based=base is not None)
        self._links: dict[str, str | None] = {}

    def rewrite(self) -> str:
        """Return the text with its URLs rewritten."""
        text = _apply_edits(self._source.text, self._edits())
        return text + self._source.write(self._insert)

    def _edits(self) -> Iterator[Edit]:
        text, links, based = self._source.text, self._links, self._addresses.based
        for location in url_locations(text, xml=self._xml):
            if isinstance(location, UrlLocation):
                yield from self._edits_at(location)
                continue
            start, end = location
            if text[start] == "#" and not based:
                continue  # within the page, at any address
            written = text[start:end]
            if written not in links:
                _make_room(links)
                links[written] = self._link(written)
            if (value := links[written]) is not None:
                yield start, end, value

    def _edits_at(self, location: UrlLocation) -> Iterator[Edit]:
        syntax, _, attribute, start, end = location
        if syntax is UrlSyntax.BODY:
            yield start, end, self._source.write(self._insert)
            self._insert = ""
        elif attribute is None:
            css = self._source.text[start:end]
            for at, until, value in _css_edits(self._source, css, self._addresses):
                yield start + at, start + until, value
        elif syntax in (UrlSyntax.BASE, UrlSyntax.DROPPED):
            yield attribute.start, attribute.end, ""
        elif attribute.value_end > attribute.value_start or syntax is UrlSyntax.PLAIN:
            yield from self._edit(location, attribute)

    def _link(self, raw: str) -> str | None:
        """Return the replacement of a link between double quotes, None to keep it."""
        written = unescape(self._source.read(raw))
        value = self._addresses.compute(written, _LINK)
        if value is None or value == written:
            return None
        return self._source.write(escape(value, '"'))

    def _edit(self, location: UrlLocation, attribute: Attribute) -> Iterator[Edit]:
        written = attribute_value(self._source, attribute)
        value = self._new_value(location, written)
        if value is None or value == written:
            return
        text = self._source.write(escape(value, attribute.quote))
        if "=" not in self._source.text[attribute.start : attribute.end]:
            text = f"={text}"
        yield attribute.value_start, attribute.value_end, text

    def _new_value(self, location: UrlLocation, written: str) -> str | None:
        if location.syntax is UrlSyntax.PLAIN and location.kind is not None:
            return self._addresses.of(written, location.kind)
        if location.syntax is UrlSyntax.SRCSET:
            return _apply_edits(written, self._srcset_edits(written))
        if location.syntax is UrlSyntax.REFRESH:
            return self._refresh(written)
        if location.syntax is UrlSyntax.CSS:
            decoded = MarkupText(written, None)
            return _apply_edits(written, _css_edits(decoded, written, self._addresses))
        return self._inner_page(written)

    def _srcset_edits(self, written: str) -> Iterator[Edit]:
        for start, end in srcset_url_spans(written):
            address = self._addresses.of(written[start:end], UrlKind.IMAGE)
            if address is not None:
                # A comma at the start would be read as the end of the previous candidate.
                yield start, end, f"./{address}" if address.startswith(",") else address

    def _refresh(self, written: str) -> str | None:
        location = refresh_url_span(written)
        if location is None:
            return None
        start, end = location
        address = self._addresses.of(written[start:end], UrlKind.REFRESH)
        return None if address is None else f"{written[:start]}{address}{written[end:]}"

    def _inner_page(self, written: str) -> str:
        if self._nesting >= MAX_NESTING:
            return ""
        addresses = self._addresses
        inner = _PageRewrite(
            MarkupText(written, None),
            addresses.base_url,
            addresses.locate,
            nesting=self._nesting + 1,
        )
        return inner.rewrite()


def _css_edits(source: MarkupText, css: str, addresses: _Addresses) -> Iterator[Edit]:
    for start, end, kind in css_url_spans(css):
        address = addresses.of(css_unescape(source.read(css[start:end])), kind)
        if address is not None:
            yield start, end, source.write(_css_escape(address), "replace")


_CSS_SPECIAL = re.compile(r"[\"'()\\<\s]")


def _css_escape(address: str) -> str:
    # CSS escapes work in either quotes and in none; percent-encoding would name another page.
    return _CSS_SPECIAL.sub(lambda match: f"\\{ord(match[0]):x} ", address)
