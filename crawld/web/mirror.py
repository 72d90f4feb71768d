"""A page of the mirror as it is sent: found, chosen, rewritten, attributed.

Everything here runs on one snapshot, on a reader's thread. `crawld.store.mirror.selection` alone
decides which copy is shown. A missing page gets a 404 page that links to the original; a redirect
is answered as a redirect if its target can be shown.

Links to origins of the mirror lead to the mirror, also where the page is not held (yet); links to
others lead to the original. Whatever is loaded with a page is loaded from the mirror or not at all,
and where it leads by itself, or sends a form, is in the mirror too: nobody leaves it unasked.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Final

import apsw

from crawld.core.content import media
from crawld.core.content.rewrite import Locate, charset_after, rewrite_css, rewrite_html
from crawld.core.content.url_kind import UrlKind
from crawld.core.display import iso_text
from crawld.core.page import PageState
from crawld.core.url import parse, url_hash
from crawld.store.mirror import lookup
from crawld.store.mirror.lookup import PageLookup
from crawld.store.mirror.selection import Reason, ShownCopy, select_copy
from crawld.store.replica import pages
from crawld.store.versions import version
from crawld.store.versions.headers import unpack
from crawld.store.versions.version import VersionRow
from crawld.web import security
from crawld.web.address import MirrorAddress, mirror_path
from crawld.web.attribution import read_attribution
from crawld.web.pages import banner, missing_page
from crawld.web.reply import (
    Header,
    Reply,
    Request,
    apply_range,
    etag_matches,
    header,
    headers,
    http_date,
)

RENDERING_VERSION: Final = 3
"""Part of every ETag: raised when the same copy is sent in another form."""

PAGE_MAX_AGE_S: Final = 60
"""How long a cache may show a page without asking; a 304 costs next to nothing."""

REQUISITE_MAX_AGE_S: Final = 3600

_HTML: Final = frozenset({media.HTML, media.XHTML})
_SVG: Final = "image/svg+xml"
_CSS: Final = "text/css"
_PDF: Final = "application/pdf"
_SCRIPTS: Final = frozenset(
    {"text/javascript", "application/javascript", "application/x-javascript"}
)

_ORIGINS: Final = lookup.OriginLookup()

_CHARSET_LABELS: Final = {
    "cp874": "windows-874",
    "cp932": "shift_jis",
    "cp949": "euc-kr",
    "big5hkscs": "big5",
    "mac-roman": "macintosh",
    "utf-16-le": "utf-16le",
    "utf-16-be": "utf-16be",
    "mac-cyrillic": "x-mac-cyrillic",
    "iso2022_jp": "iso-2022-jp",
}


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """How the mirror is shown.

    Attributes:
        banner: whether pages carry a line with their source, instant, revision and licence.
        scripts: whether scripts of mirrored pages run, in an origin of their own.
    """

    banner: bool = True
    scripts: bool = True


@dataclass(frozen=True, slots=True)
class ServedCopy:
    """A copy about to be sent."""

    page: PageLookup
    served: ShownCopy
    row: VersionRow
    address: MirrorAddress

    @property
    def links_moment(self) -> str:
        """When the pages that it names are looked at: as it was, a copy by its number too."""
        if self.address.moment.version_id is None:
            return self.address.moment.text
        return iso_text(math.ceil(self.row.visited_at))


def page_reply(
    connection: apsw.Connection,
    address: MirrorAddress,
    request: Request,
    now: float,
    look: DisplayOptions,
) -> Reply:
    """Return what is sent for a page of the mirror.

    Args:
        connection: any, read on one snapshot.
        address: which page, and when.
        request: what the browser asks.
        now: Unix seconds.
        look: how it is shown.

    Raises:
        CorruptDatabaseError: the stored copy is damaged.
    """
    page = find_page(connection, address.url)
    if not address.moment.text and (page is None or page.state is PageState.SUSPENDED):
        # An old name: the host is a copy of another, which has the page.
        kept = pages.canonical_url(connection, address.url)
        if kept is not None:
            return redirect(mirror_path(kept, ""))
    if page is None:
        return missing_page(address, None, None, None)
    found = select_copy(connection, page.page_id, now, address.moment.at)
    if found is None:
        return missing_page(address, None, None, None)
    target = None if address.moment.version_id is not None else found.redirect_url
    if target is not None and is_shown(connection, target):
        return redirect(mirror_path(target, address.moment.text))
    row = _select_version(connection, page, found, address)
    if row is None:
        first_at = lookup.first_copy_at(connection, page.page_id)
        return missing_page(address, page, first_at, target)
    return _copy_reply(connection, ServedCopy(page, found, row, address), request, look)


def find_page(connection: apsw.Connection, url: str) -> PageLookup | None:
    """Return a page by its canonical URL."""
    return lookup.find(connection, parse(url).host, url_hash(url), url)


def is_shown(connection: apsw.Connection, url: str) -> bool:
    """Return whether the mirror has something to show at a URL."""
    page = find_page(connection, url)
    return page is not None and page.last_visit_at is not None


def redirect(path: str, status: int = 302) -> Reply:
    """Return a redirect to another path of the listener; what a page loads may be led by it."""
    return Reply(status, b"", [header("location", path), *security.REDIRECT])


def _select_version(
    connection: apsw.Connection, page: PageLookup, found: ShownCopy, address: MirrorAddress
) -> VersionRow | None:
    wanted = address.moment.version_id
    if wanted is None:
        wanted = found.version_id
    if wanted is None:
        return _first_requisite_copy(connection, page)
    row = version.get(connection, wanted)
    return row if row is not None and row.page_id == page.page_id else None


def _first_requisite_copy(connection: apsw.Connection, page: PageLookup) -> VersionRow | None:
    """Return the first copy of what pages show: it is fetched after those that show it."""
    first_at = lookup.first_copy_at(connection, page.page_id)
    row = version.current_at(connection, page.page_id, first_at) if first_at is not None else None
    return row if row is not None and row.answer.content_type not in _HTML else None


def _copy_reply(
    connection: apsw.Connection, copy: ServedCopy, request: Request, look: DisplayOptions
) -> Reply:
    etag = copy_etag(copy, look)
    lines = _headers(copy, look, etag)
    if etag_matches(etag, request.headers.get("if-none-match")):
        return Reply(304, b"", lines)
    body = version.read_body(connection, copy.row.version_id) or b""
    content_type, sent = _render(connection, copy, body, look)
    lines.append(header("content-type", content_type))
    return apply_range(Reply(200, sent, lines), request, etag)


def copy_etag(copy: ServedCopy, look: DisplayOptions) -> str:
    """Return the tag of a copy as it is sent: same tag, same bytes."""
    parts = (
        RENDERING_VERSION,
        copy.row.digest.hex(),
        copy.row.version_id,
        copy.served.gone,
        copy.served.reason,
        copy.address.moment.text,
        look.banner,
        look.scripts,
    )
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=10)
    return f'"{digest.hexdigest()}"'


def _headers(copy: ServedCopy, look: DisplayOptions, etag: str) -> list[Header]:
    content_type = copy.row.answer.content_type or ""
    page = content_type in _HTML
    max_age_s = PAGE_MAX_AGE_S if page else REQUISITE_MAX_AGE_S
    url = copy.page.url
    lines = headers(
        ("etag", etag),
        ("cache-control", f"public, max-age={max_age_s}"),
    )
    made_at = http_date(copy.row.visited_at)
    related = (
        f'<{url}>; rel="original canonical", </timegate/{url}>; rel="timegate",'
        f' </timemap/link/{url}>; rel="timemap"; type="application/link-format"'
    )
    if copy.address.moment.text:
        lines.append(header("memento-datetime", made_at))
    else:
        path = mirror_path(url, f"v{copy.row.version_id}")
        related += f', <{path}>; rel="memento"; datetime="{made_at}"'
        lines.append(header("vary", "accept-datetime"))
    lines.append(header("link", related))
    if content_type.startswith(("font/", "application/font", "application/vnd.ms-font")) or (
        look.scripts and content_type in _SCRIPTS
    ):
        # Fonts and modules are loaded with CORS, from an origin that is none.
        lines.append(header("access-control-allow-origin", "*"))
    if content_type == _PDF:
        return lines + security.INERT
    return lines + (security.MIRRORED_WITH_SCRIPTS if look.scripts else security.MIRRORED)


def _render(
    connection: apsw.Connection, copy: ServedCopy, body: bytes, look: DisplayOptions
) -> tuple[str, bytes]:
    """Return the Content-Type and the bytes that are sent."""
    content_type = copy.row.answer.content_type or media.BINARY
    locate = link_resolver(connection, copy.links_moment)
    charset = copy.row.answer.charset
    if content_type in _HTML or content_type == _SVG:
        charset = charset or media.decode(body).charset
        xml = content_type != media.HTML
        line = "" if xml or not look.banner else _banner(connection, copy, body)
        sent = rewrite_html(body, copy.page.url, locate, charset=charset, xml=xml, insert=line)
        return f"{content_type}; charset={charset_label(charset_after(charset))}", sent
    if content_type == _CSS:
        charset = charset or _declared_charset(copy.row) or "utf-8"
        sent = rewrite_css(body, copy.page.url, locate, charset=charset)
        return f"{content_type}; charset={charset_label(charset_after(charset))}", sent
    charset = charset or _declared_charset(copy.row)
    return f"{content_type}; charset={charset_label(charset)}" if charset else content_type, body


def _banner(connection: apsw.Connection, copy: ServedCopy, body: bytes) -> str:
    row, page = copy.row, copy.page
    revision_id = lookup.revision_at(connection, page.page_id, row.visited_at)
    return banner(
        page.url,
        row.visited_at,
        read_attribution(page.url, body.decode("latin-1"), revision_id),
        gone=copy.served.gone,
        pinned=copy.served.reason is Reason.PINNED,
    )


def link_resolver(connection: apsw.Connection, moment: str) -> Locate:
    """Return what says where in the mirror a URL stands."""
    is_origin = _ORIGINS.of(connection)

    def locate(url: str, kind: UrlKind) -> str | None:
        if kind is UrlKind.MENTION:
            return None
        if kind is UrlKind.LINK and not is_origin(url[: url.index("/", 8)]):
            return None
        return mirror_path(url, moment)

    return locate


def charset_label(codec: str) -> str:
    """Return the label by which browsers know a charset.

    >>> label_of("cp1252"), label_of("iso8859-2"), label_of("cp932")
    ('windows-1252', 'iso-8859-2', 'shift_jis')
    """
    if codec in _CHARSET_LABELS:
        return _CHARSET_LABELS[codec]
    if codec.startswith("cp12"):
        return f"windows-{codec[2:]}"
    return codec.replace("iso8859", "iso-8859").replace("_", "-")


def _declared_charset(row: VersionRow) -> str | None:
    for name, value in unpack(row.answer.headers):
        if name.lower() == b"content-type":
            label = media.charset_parameter(value.decode("latin-1"))
            return media.codec_of(label)
    return None
