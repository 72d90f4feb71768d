"""Give the URLs of a page or a style sheet new addresses, and leave every other byte as it is.

A copy is read in another place than its original: each URL is resolved against the page (and its
base element), made canonical and handed to `locate`, which says where the copy of it is; where
there is none, the absolute original is written, so that no link leads into the void.

What else a copy cannot keep: the base element's href (addresses are already resolved), content
security policies of meta elements (they name the origins of the original), integrity and
crossorigin (they bind what is loaded to the bytes and headers of the original), ping and
preconnections (they would tell the original who reads). `javascript:`, `data:` and other schemes
are left alone; who serves the copy must keep scripts in bounds.

Invariants: linear time; a page whose URLs all stay as written comes back byte for byte; bytes
between the places are never touched, unless the charset cannot be edited bytewise (UTF-16,
Shift_JIS …): then the result is UTF-8 with a byte order mark, which tells every browser so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

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
"""Returns the new address of a canonical URL, None to leave the absolute original. An address may
be relative; it is an ASCII URL reference without fragment."""

MAX_NESTING = 2
"""Documents inside documents (srcdoc) that are rewritten; deeper ones are emptied."""

# To name a member of an Enum takes as long as all else that is done for a link.
_LINK, _CONTACT = UrlKind.LINK, UrlKind.CONTACT

_GOES_TO_ITSELF = frozenset({UrlKind.LINK, UrlKind.FORM})
"""For these an empty URL is that of the page; the others load nothing."""

_LOCAL = frozenset({UrlKind.IMAGE, UrlKind.FONT})
"""For these a mere fragment is a place in the page itself, whatever its base (CSS Values 4 section
4.5.1; SVG 2 section 16.1.4)."""

_ROOTED = ("/", "http://", "https://")
"""How references begin that mean the same on every page of an origin."""

_REMEMBERED_CHARACTERS = 512
"""Longer references are resolved each time, so that what is remembered stays small."""

Edit = tuple[int, int, str]
"""Start, end, and what stands there instead."""


def rewrite_html(
    body: bytes,
    page_url: str,
    locate: Locate,
    *,
    charset: str = "utf-8",
    xml: bool = False,
    insert: str = "",
) -> bytes:
    """Return a page with new addresses.

    Args:
        body: the page.
        page_url: where it came from, absolute.
        locate: says where copies are.
        charset: the Python codec to read it with (as stored with the version).
        xml: whether it is XML (XHTML, SVG).
        insert: markup, taken as it is, put where the page's body begins; where none is written, at
            its end. It says of itself what styles it needs.

    Raises:
        InvalidUrlError: `page_url` is none.
    """
    source = source_of(body, charset)
    page = _Page(source, page_url, locate, xml=xml, insert=insert)
    return source.body(page.rewritten())


def rewrite_css(css: bytes, base_url: str, locate: Locate, *, charset: str = "utf-8") -> bytes:
    """Return a style sheet with new addresses.

    Args:
        css: the style sheet.
        base_url: where it came from, absolute.
        locate: says where copies are.
        charset: the Python codec to read it with.

    Raises:
        InvalidUrlError: `base_url` is none.
    """
    source = source_of(css, charset)
    addresses = _Addresses(base_url, locate, based=False)
    return source.body(_edited(source.text, _css_edits(source, source.text, addresses)))


def charset_after(charset: str) -> str:
    """Return the charset (a Python codec) that a body read in another one is written in.

    >>> charset_after("cp1252"), charset_after("utf-16-le")
    ('cp1252', 'utf-8')
    """
    return charset if is_bytewise(charset) else "utf-8"


def _base_url(base: str | None, page_url: str) -> str:
    joined = resolver(page_url)(base) if base else None
    return joined or page_url


def _edited(text: str, edits: Iterable[Edit]) -> str:
    parts: list[str] = []
    position = 0
    for start, end, value in edits:
        parts += text[position:start], value
        position = end
    return "".join(parts) + text[position:] if parts else text


_resolver = lru_cache(maxsize=256)(resolver)


@lru_cache(maxsize=16_384)
def _rooted(root: str, written: str) -> tuple[str | None, str]:
    """Return what a rooted reference means, and its fragment with the sign before it.

    Menus repeat on every page, links on many.
    """
    target, sign, fragment = written.partition("#")
    return _resolver(root)(target), sign + fragment


class _Addresses:
    """What the URLs of one page become; each is worked out once."""

    def __init__(self, base_url: str, locate: Locate, *, based: bool) -> None:
        self.locate = locate
        self.base_url = base_url
        self.based = based
        self._resolve = resolver(base_url)
        self._root = self._resolve("/") or base_url
        self._known: dict[tuple[str, UrlKind], str | None] = {}

    def of(self, url: str, kind: UrlKind) -> str | None:
        """Return the new address of a URL as written, None to leave it; known ones at once."""
        key = (url, kind)
        if key not in self._known:
            self._known[key] = self.work_out(url, kind)
        return self._known[key]

    def work_out(self, url: str, kind: UrlKind) -> str | None:
        """Return the new address of a URL as written, None to leave it."""
        if kind is _CONTACT:
            return "data:,"
        written = url.strip("\t\n\f\r ")
        if written.startswith(_ROOTED) and len(written) <= _REMEMBERED_CHARACTERS:
            absolute, fragment = _rooted(self._root, written)
        else:
            if not written and kind not in _GOES_TO_ITSELF:
                return None
            if written[:1] in {"", "#"} and (not self.based or kind in _LOCAL):
                return None  # the page itself, wherever it is
            target, sign, fragment = written.partition("#")
            absolute, fragment = self._resolve(target), sign + fragment
        if absolute is None:
            return None
        return (self.locate(absolute, kind) or absolute) + fragment


class _Page:
    """One page under way."""

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

    def rewritten(self) -> str:
        """Return the text with new addresses."""
        text = _edited(self._source.text, self._edits())
        return text + self._source.write(self._insert)

    def _edits(self) -> Iterator[Edit]:
        text, links, based = self._source.text, self._links, self._addresses.based
        for place in url_locations(text, xml=self._xml):
            if isinstance(place, UrlLocation):
                yield from self._edits_at(place)
                continue
            start, end = place
            if text[start] == "#" and not based:
                continue  # inside the page, wherever that is
            written = text[start:end]
            if written not in links:
                links[written] = self._link(written)
            if (value := links[written]) is not None:
                yield start, end, value

    def _edits_at(self, place: UrlLocation) -> Iterator[Edit]:
        syntax, _, attribute, start, end = place
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
            yield from self._edit(place, attribute)

    def _link(self, raw: str) -> str | None:
        """Return what stands in the place of a link between double quotes, None if it stays."""
        written = unescape(self._source.read(raw))
        value = self._addresses.work_out(written, _LINK)
        if value is None or value == written:
            return None
        return self._source.write(escape(value, '"'))

    def _edit(self, place: UrlLocation, attribute: Attribute) -> Iterator[Edit]:
        written = attribute_value(self._source, attribute)
        value = self._new_value(place, written)
        if value is None or value == written:
            return
        text = self._source.write(escape(value, attribute.quote))
        if "=" not in self._source.text[attribute.start : attribute.end]:
            text = f"={text}"
        yield attribute.value_start, attribute.value_end, text

    def _new_value(self, place: UrlLocation, written: str) -> str | None:
        if place.syntax is UrlSyntax.PLAIN and place.kind is not None:
            return self._addresses.of(written, place.kind)
        if place.syntax is UrlSyntax.SRCSET:
            return _edited(written, self._srcset_edits(written))
        if place.syntax is UrlSyntax.REFRESH:
            return self._refresh(written)
        if place.syntax is UrlSyntax.CSS:
            decoded = MarkupText(written, None)
            return _edited(written, _css_edits(decoded, written, self._addresses))
        return self._inner_page(written)

    def _srcset_edits(self, written: str) -> Iterator[Edit]:
        for start, end in srcset_url_spans(written):
            address = self._addresses.of(written[start:end], UrlKind.IMAGE)
            if address is not None:
                # A comma in front would be taken for the end of what was before.
                yield start, end, f"./{address}" if address.startswith(",") else address

    def _refresh(self, written: str) -> str | None:
        place = refresh_url_span(written)
        if place is None:
            return None
        start, end = place
        address = self._addresses.of(written[start:end], UrlKind.REFRESH)
        return None if address is None else f"{written[:start]}{address}{written[end:]}"

    def _inner_page(self, written: str) -> str:
        if self._nesting >= MAX_NESTING:
            return ""
        addresses = self._addresses
        inner = _Page(
            MarkupText(written, None),
            addresses.base_url,
            addresses.locate,
            nesting=self._nesting + 1,
        )
        return inner.rewritten()


def _css_edits(source: MarkupText, css: str, addresses: _Addresses) -> Iterator[Edit]:
    for start, end, kind in css_url_spans(css):
        address = addresses.of(css_unescape(source.read(css[start:end])), kind)
        if address is not None:
            yield start, end, source.write(_css_escape(address), "replace")


_IN_CSS = re.compile(r"[\"'()\\<\s]")


def _css_escape(address: str) -> str:
    # Escapes of CSS, which hold in either quote and in none; percent signs would name another page.
    return _IN_CSS.sub(lambda match: f"\\{ord(match[0]):x} ", address)
