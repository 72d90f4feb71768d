"""Converts URLs to paths in a static export that every file system accepts.

    https://example.org/                      example.org/index.html
    https://example.org/wiki/Main_Page        example.org/wiki/Main_Page.html
    https://example.org/index.php/Talk:A      example.org/index.php_/Talk_A.html
    https://example.org/s.css?v=3             example.org/s~5f0c1a9e77d2.css

The path depends only on URL and media type, so a page keeps it from export to export. It may not be
unique: file systems do not make all distinctions of URLs (case, `a` and `a.html`, characters that
Windows forbids). `path_key` is equal for paths that are the same file on some file system. If a
path is taken, `marked_path` returns another with 48 bits of the hash of the URL.

Rule 1: no segment is empty, `.` or `..`, starts with a dot, ends with a blank or a dot, holds a
separator, a control character or one of `<>:"|?*`, or is longer than `SEGMENT_BYTES`. Rule 2: a
file ends in `.` and an extension, a directory never does (it gets a `_`), so that a page and the
directory of the pages below it never collide. Rule 3: a URL that has a query or is too long for a
path always has the mark.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import quote, unquote

from crawld.core.url import url_hash

SEGMENT_BYTES: Final = 120
"""With a mark, a name is shorter than the 143 bytes that encrypted home directories allow."""

PATH_BYTES: Final = 700
"""Below the 1,024 bytes of the strictest Unix; Windows needs long paths enabled."""

INDEX: Final = "index.html"
"""The index of the export, next to the directories of the hosts."""

_TYPES: Final = {
    "text/html": ".html",
    "application/xhtml+xml": ".xhtml",
    "text/css": ".css",
    "text/javascript": ".js",
    "application/javascript": ".js",
    "application/json": ".json",
    "application/xml": ".xml",
    "text/xml": ".xml",
    "application/rss+xml": ".xml",
    "application/atom+xml": ".xml",
    "text/plain": ".txt",
    "image/svg+xml": ".svg",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/avif": ".avif",
    "image/x-icon": ".ico",
    "image/vnd.microsoft.icon": ".ico",
    "application/pdf": ".pdf",
    "font/woff": ".woff",
    "font/woff2": ".woff2",
    "font/ttf": ".ttf",
    "video/mp4": ".mp4",
    "video/webm": ".webm",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
}

_BY_EXTENSION: Final = frozenset(
    {"text/html", "application/xhtml+xml", "text/css", "image/svg+xml", "text/javascript"}
)
"""Browsers detect these types of files by extension alone, so the extension must match."""

_EXTENSIONS: Final = {"text/html": (".html", ".htm"), "text/javascript": (".js", ".mjs")}

_EXTENSION: Final = re.compile(r"\.[A-Za-z0-9]{1,10}\Z")
_REFUSED: Final = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"/\\|?*~\ud800-\udfff\ufffd]')
_RESERVED: Final = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|\Z)", re.IGNORECASE
)


def page_path(url: str, content_type: str | None) -> str:
    """Return the path of a page relative to the export, with `/` between segments.

    `content_type` is the media type of its copy; None for a generated page, as for a redirect.
    """
    host, directories, last, query = _split(url)
    kind = content_type or "text/html"
    stem, extension = _name(last, kind)
    if query:
        stem = _with_mark(stem, url)
    path = "/".join([host, *(_directory(each) for each in directories), stem + extension])
    if len(path.encode()) > PATH_BYTES:
        return f"{host}/{_mark(url)}{extension}"
    return path


def marked_path(path: str, url: str) -> str:
    """Return the alternative path of a page whose path is taken; always the same one."""
    stem, dot, extension = path.rpartition(".")
    directory, slash, name = stem.rpartition("/")
    return f"{directory}{slash}{_with_mark(name, url)}{dot}{extension}"


def path_key(path: str) -> int:
    """Return a 64-bit key, equal for paths that are the same file on some file system."""
    return url_hash(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold()))


def quote_path(path: str) -> str:
    """Return a path percent-encoded for a link."""
    return quote(path, safe="/!$&'()*+,;=:@~-._")


def relative_link(quoted_from: str, quoted_to: str) -> str:
    """Return the relative link from one file of the export to another; both are quoted paths."""
    below = quoted_from[: quoted_from.rfind("/") + 1]
    if quoted_to.startswith(below):
        return quoted_to[len(below) :] or "./"
    here, there = quoted_from.split("/"), quoted_to.split("/")
    shared = 0
    for one, other in zip(here[:-1], there[:-1], strict=False):
        if one != other:
            break
        shared += 1
    return "../" * (len(here) - 1 - shared) + "/".join(there[shared:]) or "./"


def _split(url: str) -> tuple[str, list[str], str, str]:
    """Return host, directories, last segment and query of a canonical URL."""
    _, _, rest = url.partition("://")
    target, _, query = rest.partition("?")
    host, *segments = target.split("/")
    name = _safe(host)
    if name == INDEX:
        name += "_"
    return name, segments[:-1], segments[-1] if segments else "", query


def _name(last: str, kind: str) -> tuple[str, str]:
    """Return stem and extension of the last segment."""
    if not last:
        return "index", _TYPES.get(kind, ".bin")
    name = _safe(unquote(last, errors="replace"))
    found = _EXTENSION.search(name)
    if found is None or found.start() == 0:
        return name, _TYPES.get(kind, ".bin")
    own = found[0]
    if kind in _BY_EXTENSION and own.lower() not in _EXTENSIONS.get(kind, (_TYPES[kind],)):
        return name, _TYPES[kind]
    if kind not in _BY_EXTENSION and own.lower() in (".html", ".htm", ".xhtml", ".svg"):
        # A file of another type must not be opened as a page.
        return name, _TYPES.get(kind, ".bin")
    return name[: found.start()], own


def _directory(segment: str) -> str:
    name = _safe(unquote(segment, errors="replace")) if segment else "_"
    return f"{name}_" if "." in name else name


def _safe(text: str) -> str:
    """Return a text as a file name by rule 1; different texts may give the same name."""
    name = _REFUSED.sub("_", unicodedata.normalize("NFC", text))
    if len(name.encode()) > SEGMENT_BYTES:
        name = _shorten(name)
    name = name.rstrip(" .") or "_"
    if name[0] == "." or _RESERVED.match(name):
        name = f"_{name}"
    return name


def _shorten(name: str) -> str:
    """Return a name cut to `SEGMENT_BYTES`, with its extension."""
    found = _EXTENSION.search(name)
    extension = found[0] if found else ""
    room = SEGMENT_BYTES - len(extension)
    return name.encode()[:room].decode(errors="ignore") + extension


def _with_mark(stem: str, url: str) -> str:
    return f"{stem}~{_mark(url)}"


def _mark(url: str) -> str:
    return f"{url_hash(url) & (1 << 48) - 1:012x}"
