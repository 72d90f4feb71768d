"""Serves mirrored pages: finds the page, selects a version, rewrites it, adds the banner.

Everything runs on one snapshot, on a reader thread. Only `crawld.store.mirror.selection` decides
which version is shown. For a missing page it returns a 404 page with a link to the original. A
redirect stays a redirect if its target can be shown.

Links to mirrored origins lead into the mirror, even to pages without a copy; other links lead to
the original. Requisites, automatic redirects and form targets always stay in the mirror, so that a
reader leaves it only by a click.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlencode

import apsw

from crawld.core.content import media
from crawld.core.content.quarantine import UNANALYSED
from crawld.core.content.rewrite import Locate, charset_after, rewrite_css, rewrite_html
from crawld.core.content.url_kind import UrlKind
from crawld.core.display import iso_text, rough_ago_text
from crawld.core.page import Outcome, PageState
from crawld.store.frontier.removal import Removal
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
from crawld.web.banner import banner
from crawld.web.feed_format import ATOM
from crawld.web.large_pages import (
    INLINE_BYTES,
    INLINE_FILE_BYTES,
    READING_FACTOR,
    RENDERING_FACTOR,
)
from crawld.web.pages import missing_page, too_large, withheld_page
from crawld.web.reply import (
    Header,
    Postponed,
    Rendered,
    Reply,
    Request,
    apply_range,
    etag_matches,
    header,
    headers,
    http_date,
)
from crawld.web.wiki_address import other_spelling, wiki_of
from crawld.workers import check_wanted

RENDERING_VERSION: Final = 4
"""Part of every ETag; increase it when the same version is rendered differently."""

PAGE_MAX_AGE_S: Final = 60
"""Cache lifetime of a page; short, since a 304 costs almost nothing."""

REQUISITE_MAX_AGE_S: Final = 3600

_HTML: Final = frozenset({media.HTML, media.XHTML})
_SVG: Final = "image/svg+xml"
_CSS: Final = "text/css"
_REWRITTEN: Final = _HTML | {_SVG, _CSS}
_PDF: Final = "application/pdf"
_SCRIPTS: Final = frozenset(
    {"text/javascript", "application/javascript", "application/x-javascript"}
)

FindRendered = Callable[[str], Rendered | None]
"""Returns the rendered page with an ETag."""

_ORIGINS: Final = lookup.OriginLookup()

_MISSING: Final = frozenset({Outcome.GONE, Outcome.SOFT_GONE})

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
    """How mirrored pages are shown.

    Attributes:
        banner: add a line with source, time, revision and license.
        scripts: run scripts of mirrored pages, each page in an origin of its own.
        most_bytes: larger copies are not shown; None: all are.
        most_rewritten_bytes: larger pages are shown as their source; None: none are.
    """

    banner: bool = True
    scripts: bool = True
    most_bytes: int | None = None
    most_rewritten_bytes: int | None = None

    def shows(self, size_bytes: int) -> bool:
        """Whether a copy of a size is shown."""
        return self.most_bytes is None or size_bytes <= self.most_bytes

    def rewrites(self, size_bytes: int) -> bool:
        """Whether a page of a size is rewritten."""
        return self.most_rewritten_bytes is None or size_bytes <= self.most_rewritten_bytes


@dataclass(frozen=True, slots=True)
class ServedCopy:
    """A copy to send; `superseded`: a newer one is stored."""

    page: PageLookup
    served: ShownCopy
    row: VersionRow
    address: MirrorAddress
    now: float
    superseded: bool

    @property
    def link_selector(self) -> str:
        """The version selector for linked pages: the time of this copy, even if selected by ID."""
        if self.address.selector.version_id is None:
            return self.address.selector.text
        return iso_text(math.ceil(self.row.visited_at))

    @property
    def missing_since(self) -> str | None:
        """How long ago the last visit did not find the page; None: it did, or this is old."""
        at = self.page.last_visit_at
        if at is None or self.page.last_outcome not in _MISSING or self.address.selector.text:
            return None
        return rough_ago_text(at, self.now)

    @property
    def held_id(self) -> int | None:
        """The newest copy, if this one is shown in its place; None: it is not."""
        served = self.served
        held = served.newest_id != self.row.version_id and not self.address.selector.text
        return served.newest_id if held else None

    @property
    def removal(self) -> Removal | None:
        """What the wiki reports about the page; None: it is there, or this is an old copy."""
        return None if self.address.selector.text else self.served.removal

    @property
    def left_at(self) -> float | None:
        """When the page left the mirrored part of its wiki; None: it did not, or this is old."""
        return None if self.address.selector.text else self.served.left_at

    @property
    def leads_to(self) -> str | None:
        """The page to which the original redirects now; a copy is shown if the mirror lacks it."""
        return None if self.address.selector.text else self.served.redirect_url


def page_reply(
    connection: apsw.Connection,
    address: MirrorAddress,
    request: Request,
    now: float,
    display: DisplayOptions,
    find_rendered: FindRendered | None = None,
) -> Reply | Postponed:
    """Return the response for a mirrored page; the connection is on one snapshot.

    With `find_rendered` a large page is postponed unless it was rendered before.

    Raises:
        CorruptDatabaseError: the stored version is damaged.
    """
    page = find_page(connection, address.url)
    if not address.selector.text and (page is None or page.state is PageState.SUSPENDED):
        # An old URL: its host is a replica of another host that has the page.
        kept = pages.canonical_url(connection, address.url)
        if kept is not None:
            return redirect(mirror_path(kept, ""))
    if page is None:
        other = other_spelling(connection, address.url)
        if other is not None and is_shown(connection, other):
            return redirect(mirror_path(other, address.selector.text))
        return missing_page(address)
    found = select_copy(connection, page.page_id, now, address.selector.at)
    if found is None:
        return missing_page(address)
    if found.withheld:
        return withheld_page(address, found.removal, left_at=found.left_at)
    target = None if address.selector.version_id is not None else found.redirect_url
    if target is not None and is_shown(connection, target):
        return redirect(mirror_path(target, address.selector.text))
    if target is not None and found.withholds:
        return withheld_page(address, None, target)
    row = _select_version(connection, page, found, address)
    if row is None:
        first_at = lookup.first_copy_at(connection, page.page_id)
        return missing_page(address, page, first_at, target)
    superseded = bool(address.selector.text) and version.next_after(connection, row) is not None
    copy = ServedCopy(page, found, row, address, now, superseded)
    return _copy_reply(connection, copy, request, display, find_rendered)


def find_page(connection: apsw.Connection, url: str) -> PageLookup | None:
    """Return a page by its canonical URL."""
    return lookup.find(connection, url)


def is_shown(connection: apsw.Connection, url: str) -> bool:
    """Return whether the mirror has a visited page at a URL."""
    page = find_page(connection, url)
    return page is not None and page.last_visit_at is not None


def redirect(path: str, status: int = 302) -> Reply:
    """Return a redirect to another path of the listener, also valid for requisites."""
    return Reply(status, b"", [header("location", path), *security.REDIRECT])


def _select_version(
    connection: apsw.Connection, page: PageLookup, found: ShownCopy, address: MirrorAddress
) -> VersionRow | None:
    selected = address.selector.version_id
    wanted = found.version_id if selected is None else selected
    if wanted is None:
        return _first_requisite_copy(connection, page)
    row = version.get(connection, wanted)
    return row if row is not None and row.page_id == page.page_id else None


def _first_requisite_copy(connection: apsw.Connection, page: PageLookup) -> VersionRow | None:
    """Return the first version of a requisite, since requisites are fetched after their pages."""
    first_at = lookup.first_copy_at(connection, page.page_id)
    row = version.current_at(connection, page.page_id, first_at) if first_at is not None else None
    return row if row is not None and row.response.content_type not in _HTML else None


def _copy_reply(
    connection: apsw.Connection,
    copy: ServedCopy,
    request: Request,
    display: DisplayOptions,
    find_rendered: FindRendered | None,
) -> Reply | Postponed:
    etag = copy_etag(copy, display)
    lines = _headers(copy, display, etag)
    if etag_matches(etag, request.headers.get("if-none-match")):
        return Reply(304, b"", lines)
    size_bytes, content_type = copy.row.size_bytes, copy.row.response.content_type
    if not display.shows(size_bytes):
        return too_large(f"This copy, {size_bytes // 1_000_000} MB, is")
    rewritten = content_type in _REWRITTEN and display.rewrites(size_bytes)
    large = rewritten and size_bytes > INLINE_BYTES

    def finish(rendered: Rendered) -> Reply:
        sent = [*lines, header("content-type", rendered.content_type)]
        reply = Reply(200, rendered.body, sent, rendered if large else None)
        return apply_range(reply, request, etag)

    rendered = find_rendered(etag) if large and find_rendered is not None else None
    if find_rendered is not None and rendered is None:
        if large:
            return Postponed(etag, finish, RENDERING_FACTOR * size_bytes)
        if size_bytes > INLINE_FILE_BYTES:
            return Postponed(memory_bytes=READING_FACTOR * size_bytes)
    if rendered is None:
        body = version.read_body(connection, copy.row.version_id) or b""
        rendered = Rendered(etag, *_render(connection, copy, body, display))
    return finish(rendered)


def copy_etag(copy: ServedCopy, display: DisplayOptions) -> str:
    """Return the ETag of a copy as sent; equal tags mean equal bytes."""
    parts = (
        RENDERING_VERSION,
        copy.row.digest.hex(),
        copy.row.version_id,
        copy.row.response.content_type == UNANALYSED,
        copy.served.gone,
        copy.missing_since,
        copy.held_id,
        copy.superseded,
        copy.removal,
        copy.left_at,
        copy.leads_to,
        copy.served.reason,
        copy.address.selector.text,
        display.banner,
        display.scripts,
        display.rewrites(copy.row.size_bytes),
    )
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=10)
    return f'"{digest.hexdigest()}"'


def _headers(copy: ServedCopy, display: DisplayOptions, etag: str) -> list[Header]:
    content_type = copy.row.response.content_type or ""
    max_age_s = PAGE_MAX_AGE_S if content_type in _HTML else REQUISITE_MAX_AGE_S
    url = copy.page.url
    lines = headers(("etag", etag), ("cache-control", f"public, max-age={max_age_s}"))
    made_at = http_date(copy.row.visited_at)
    related = (
        f'<{url}>; rel="original canonical", </timegate/{url}>; rel="timegate",'
        f' </timemap/link/{url}>; rel="timemap"; type="application/link-format"'
    )
    related += f', </changes.atom?{urlencode({"url": url})}>; rel="alternate"; type="{ATOM}"'
    if copy.address.selector.text:
        lines.append(header("memento-datetime", made_at))
    else:
        path = mirror_path(url, f"v{copy.row.version_id}")
        related += f', <{path}>; rel="memento"; datetime="{made_at}"'
        lines.append(header("vary", "accept-datetime"))
    lines.append(header("link", related))
    if content_type.startswith(("font/", "application/font", "application/vnd.ms-font")) or (
        display.scripts and content_type in _SCRIPTS
    ):
        # Browsers load fonts and modules with CORS, here from an opaque origin.
        lines.append(header("access-control-allow-origin", "*"))
    if content_type == _PDF:
        return lines + security.INERT
    return lines + (security.MIRRORED_WITH_SCRIPTS if display.scripts else security.MIRRORED)


def _render(
    connection: apsw.Connection, copy: ServedCopy, body: bytes, display: DisplayOptions
) -> tuple[str, bytes]:
    """Return the Content-Type and the body to send."""
    content_type = copy.row.response.content_type or media.BINARY
    is_source = content_type in _REWRITTEN and not display.rewrites(len(body))
    if content_type == UNANALYSED or is_source:
        return media.PLAIN, body
    locate = link_resolver(connection, copy.link_selector)
    charset = copy.row.response.charset
    if content_type in _HTML or content_type == _SVG:
        charset = charset or media.decode(body).charset
        xml = content_type != media.HTML
        line = "" if xml or not display.banner else _banner(connection, copy, body)
        body = rewrite_html(body, copy.page.url, locate, charset=charset, xml=xml, insert=line)
        charset = charset_after(charset)
    elif content_type == _CSS:
        charset = charset or _declared_charset(copy.row) or "utf-8"
        body = rewrite_css(body, copy.page.url, locate, charset=charset)
        charset = charset_after(charset)
    else:
        charset = charset or _declared_charset(copy.row)
    return f"{content_type}; charset={charset_label(charset)}" if charset else content_type, body


def _banner(connection: apsw.Connection, copy: ServedCopy, body: bytes) -> str:
    row, page = copy.row, copy.page
    revision_id = lookup.revision_at(connection, page.page_id, row.visited_at)
    return banner(
        page.url,
        row.visited_at,
        read_attribution(
            page.url,
            body.decode("latin-1"),
            revision_id,
            partial(wiki_of, connection, page.url),
        ),
        gone=copy.served.gone,
        missing_since=copy.missing_since,
        removal=copy.removal,
        left_at=copy.left_at,
        leads_to=copy.leads_to,
        pinned=copy.served.reason is Reason.PINNED,
        held_id=copy.held_id,
        superseded=copy.superseded,
        truncated=row.response.truncated,
    )


def link_resolver(connection: apsw.Connection, selector: str) -> Locate:
    """Return the function that maps a URL in a page to a path in the mirror."""
    is_origin = _ORIGINS.of(connection)

    def locate(url: str, kind: UrlKind) -> str | None:
        check_wanted()
        if kind is UrlKind.MENTION:
            return None
        if kind is UrlKind.LINK and not is_origin(url[: url.index("/", 8)]):
            return None
        return mirror_path(url, selector)

    return locate


def charset_label(codec: str) -> str:
    """Return the label of a charset in browsers.

    >>> charset_label("cp1252"), charset_label("iso8859-2"), charset_label("cp932")
    ('windows-1252', 'iso-8859-2', 'shift_jis')
    """
    if codec in _CHARSET_LABELS:
        return _CHARSET_LABELS[codec]
    if codec.startswith("cp12"):
        return f"windows-{codec[2:]}"
    return codec.replace("iso8859", "iso-8859").replace("_", "-")


def _declared_charset(row: VersionRow) -> str | None:
    for name, value in unpack(row.response.headers):
        if name.lower() == b"content-type":
            label = media.charset_parameter(value.decode("latin-1"))
            return media.codec_of(label)
    return None
