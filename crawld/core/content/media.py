"""Detects the media type and the charset of a body, and decodes its text.

The declared type is a hint; the content takes precedence where it is conclusive. The rules follow
the spirit of the WHATWG MIME Sniffing Standard, reordered for a crawler that looks for pages
instead of protecting a browser:

1. A binary signature (image, PDF, archive, audio, video, font) overrides every declared type, but
   an archive may keep a more precise declared type (a .docx is a zip).
2. A body declared as image, audio, video or JSON that starts as HTML is HTML: an error page. JSON
   declared as HTML is JSON, if it starts with an object of named values or a list of texts.
3. Bytes that never occur in text make a text type, and a body without a declared type,
   `application/octet-stream`. HTML may contain stray NULs if it has a tag.
4. Declared HTML or XML with the root element `rss`, `feed`, `rdf:RDF` or `html` is named after it.
5. Without a declared type (or with `application/octet-stream`, which servers send as a default):
   HTML by its first tag, XML, JSON, else text/plain.
6. Otherwise the declared type holds: HTML declared text/plain stays text/plain.

The charset is looked for in this order: byte order mark, header, meta element or XML declaration in
the first 1,024 bytes, UTF-8 if the whole body is valid, a detector on a bounded prefix, and finally
windows-1252. Labels have the meaning of the WHATWG Encoding Standard (latin1 is windows-1252).

Invariants: neither function raises; apart from decoding itself, both read a bounded part. The
patterns here read at most `SNIFF_BYTES`, so their time is bounded. A body is decoded in slices,
because one call of a codec holds the interpreter lock.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

from charset_normalizer import from_bytes

from crawld.core.value_type import value_type

HTML = "text/html"
XHTML = "application/xhtml+xml"
PLAIN = "text/plain"
XML = "application/xml"
JSON = "application/json"
BINARY = "application/octet-stream"

SNIFF_BYTES = 1445
"""Bytes used to detect the type: the resource header of the WHATWG standard."""

_CACHED_HEADS = 64

_META_BYTES = 1024
_DETECT_BYTES = 4096

_SLICE_BYTES = 2**16
"""Bytes decoded in one call: 64 KB of invalid bytes take a table codec 14 ms."""

_UNKNOWN = frozenset(
    {"", BINARY, "unknown/unknown", "application/unknown", "*/*", "content/unknown"}
)
_XML_TYPES = frozenset({XML, "text/xml"})
_CONTAINERS = frozenset({"application/zip", "application/gzip", "application/ogg"})

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"OggS\x00", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"MThd\x00\x00\x00\x06", "audio/midi"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\x00\x01\x00\x00\x00", "font/ttf"),
    (b"OTTO\x00", "font/otf"),
    (b"\x00asm\x01\x00\x00\x00", "application/wasm"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"\x7fELF", "application/x-executable"),
)
_MAGICS = (*(magic for magic, _ in _SIGNATURES), b"RIFF")
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/avi"}
_BRANDS = {b"avif": "image/avif", b"heic": "image/heic", b"M4A ": "audio/mp4"}

_BINARY_BYTES = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_PROLOGUE = re.compile(rb"(?:\s+|<!--.*?-->|<\?.*?\?>|<!doctype\s++(?!html)[^>]*>)+", re.DOTALL)
_HTML_START = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|title|meta|link|base|script|style|iframe|h[1-6]|div|font|"
    rb"table|a|p|b|br|ul|ol|center|main|article|section)[\s>/]",
    re.IGNORECASE,
)
_ANY_TAG = re.compile(rb"<(?:!doctype|/?[a-z][a-z0-9]*)[\s>]", re.IGNORECASE)
_ROOTS = (
    (re.compile(rb"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE), XHTML),
    (re.compile(rb"<rss[\s>]"), "application/rss+xml"),
    (re.compile(rb"<feed[\s>]"), "application/atom+xml"),
    (re.compile(rb"<rdf:RDF[\s>]"), "application/rdf+xml"),
    (re.compile(rb"<svg[\s>]"), "image/svg+xml"),
)
_JSON_START = re.compile(rb"\s*(?:\{\s*(?:\"|\}\s*$)|\[\s*(?:[\[{\"\d\]-]|true|false|null))")
_JSON_TEXT = rb"\"(?:[^\"\\\x00-\x1f]|\\.){0,400}\""
_JSON_SURELY = re.compile(
    rb"\s*(?:(?:\[\s*)?\{\s*" + _JSON_TEXT + rb"\s*:|\[\s*" + _JSON_TEXT + rb"\s*[,\]])"
)
"""What no page starts with: a list of numbers may be a footnote."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_CHARSET_PARAMETER = re.compile(r"charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)


def media_type(content_type: str | None) -> str:
    """Return the type and subtype of a Content-Type field in lower case, "" if it has none.

    >>> media_type("Text/HTML; charset=utf-8"), media_type("nonsense")
    ('text/html', '')
    """
    essence = (content_type or "").split(";")[0].split(",")[0].strip().lower()
    return essence if essence.count("/") == 1 and not essence.startswith("/") else ""


def charset_parameter(content_type: str | None) -> str | None:
    """Return the charset a Content-Type field declares, or None."""
    match = _CHARSET_PARAMETER.search((content_type or "")[:1024])
    return match[1] if match else None


def sniff(declared: str | None, head: bytes) -> str:
    """Return the media type of a body by the rules above, from its first `SNIFF_BYTES`.

    Several steps of one visit ask for it.
    """
    return _sniffed(declared, bytes(head[:SNIFF_BYTES]))


@lru_cache(maxsize=_CACHED_HEADS)
def _sniffed(declared: str | None, head: bytes) -> str:
    believed = media_type(declared)
    if signature := _signature(head):
        precise = signature in _CONTAINERS and _names_binary(believed)
        return believed if precise else signature
    if _names_media(believed):
        return HTML if _HTML_START.match(_skip_prologue(head)) else believed
    if _is_binary(head):
        return _binary_or_html(believed, head)
    if believed in _UNKNOWN:
        return _text_type(head)
    if believed == JSON and _HTML_START.match(_skip_prologue(head)):
        return HTML
    if believed == HTML and _JSON_SURELY.match(head.removeprefix(codecs.BOM_UTF8)):
        return JSON
    if believed == HTML or believed in _XML_TYPES:
        return _named_by_root(believed, head)
    return believed


def sniff_text(declared: str | None, head: bytes) -> str:
    """Return the media type as `sniff` does, but what is declared text/plain may be more.

    A browser shows such a body as it is; who asks for JSON is given JSON.
    """
    believed = sniff(declared, head)
    return _text_type(head[:SNIFF_BYTES]) if believed == PLAIN else believed


def _names_binary(believed: str) -> bool:
    return believed not in _UNKNOWN and not believed.startswith("text/") and believed != XHTML


def _names_media(believed: str) -> bool:
    return believed.startswith(("image/", "audio/", "video/", "font/")) and "xml" not in believed


def _signature(head: bytes) -> str:
    if not head.startswith(_MAGICS) and head[4:8] != b"ftyp":
        return ""  # most bodies: one call tells it
    for magic, name in _SIGNATURES:
        if head.startswith(magic):
            return "" if magic == b"BM" and not _is_bitmap(head) else name
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12], "")
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/mp4")
    return ""


def _is_bitmap(head: bytes) -> bool:
    # Two letters are too few to tell an image from a text that starts with "BM".
    return head[6:10] == b"\0\0\0\0" and len(head) > 14


def _skip_prologue(head: bytes) -> bytes:
    text = head.removeprefix(codecs.BOM_UTF8)
    match = _PROLOGUE.match(text)
    return text[match.end() :] if match else text


def _is_binary(head: bytes) -> bool:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    return _BINARY_BYTES.search(head) is not None


def _binary_or_html(believed: str, head: bytes) -> str:
    if believed in {HTML, XHTML}:
        # Without its NULs, UTF-16 is close enough to ASCII to show its tags.
        return believed if _ANY_TAG.search(head.replace(b"\0", b"")) else BINARY
    textual = believed.startswith("text/") or believed.endswith(("xml", "json"))
    return BINARY if textual or believed in _UNKNOWN else believed


def _text_type(head: bytes) -> str:
    start = _skip_prologue(head)
    if _HTML_START.match(start):
        return XHTML if head.lstrip().startswith(b"<?xml") else HTML
    if head.lstrip().startswith(b"<?xml") or any(root.match(start) for root, _ in _ROOTS):
        return _named_by_root(XML, head)
    return JSON if _JSON_START.match(head) else PLAIN


def _named_by_root(believed: str, head: bytes) -> str:
    start = _skip_prologue(head)
    for root, name in _ROOTS:
        if root.match(start):
            is_page = name == XHTML or name.startswith("image/")
            return HTML if believed == HTML and is_page else name
    return believed


@value_type
class DecodedText:
    """The text of a body, and the Python codec that decoded it."""

    text: str
    charset: str


def decode(body: bytes, declared_charset: str | None = None) -> DecodedText:
    """Decode a text body, whole or cut anywhere; bytes invalid in its charset become U+FFFD."""
    for mark, charset in _BOMS:
        if body.startswith(mark):
            return _decoded(body[len(mark) :], charset)
    if header := codec_of(declared_charset):
        return _decoded(body, header)
    if meta := _meta_charset(body[:_META_BYTES]):
        return _decoded(body, meta)
    text = _valid_utf8(body)
    if text is not None:
        return DecodedText(text, "utf-8")
    return _decoded(body, _detected(body) or "cp1252")


def _decoded(body: bytes, charset: str) -> DecodedText:
    return DecodedText(decode_as(body, charset), charset)


def decode_as(body: bytes, codec: str) -> str:
    """Decode a body with a Python codec; invalid bytes become U+FFFD."""
    if len(body) <= _SLICE_BYTES:
        return body.decode(codec, "replace")
    decoder = codecs.getincrementaldecoder(codec)("replace")
    starts = range(0, len(body), _SLICE_BYTES)
    texts = [decoder.decode(body[start : start + _SLICE_BYTES]) for start in starts]
    return "".join([*texts, decoder.decode(b"", final=True)])


def _valid_utf8(body: bytes) -> str | None:
    """Return the text if it is UTF-8, allowing a truncated last character."""
    try:
        text, used = codecs.utf_8_decode(body, "strict", False)
    except UnicodeDecodeError:
        return None
    return text if used == len(body) else text + "\ufffd"


_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_META_CHARSET = re.compile(
    rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml\s[^>]*?encoding\s*=\s*[\"']([\w.:-]+)",
    re.IGNORECASE,
)


def _meta_charset(head: bytes) -> str | None:
    match = _META_CHARSET.search(_COMMENT.sub(b"", head))
    if match is None:
        return None
    codec = codec_of((match[1] or match[2]).decode("ascii", "replace"))
    # A page whose meta element can be read byte by byte is not in UTF-16, even if declared so.
    return "utf-8" if codec and codec.startswith("utf-16") else codec


_NOT_ASCII = re.compile(rb"[\x80-\xff]")


def _detected(body: bytes) -> str | None:
    telling = _NOT_ASCII.search(body)
    start = max(0, telling.start() - 256) if telling else 0
    best = from_bytes(
        body[start : start + _DETECT_BYTES],
        steps=4,
        cp_isolation=_DETECTABLE,
        preemptive_behaviour=False,
    ).best()
    return codec_of(best.encoding) if best is not None else None


# Labels with another meaning on the web than in Python, or unknown to Python. Source: WHATWG
# Encoding Standard, section 4.2.
_WEB_LABELS = {
    **dict.fromkeys(
        (
            *("ascii", "us-ascii", "ansi_x3.4-1968", "latin1", "l1", "iso-8859-1", "iso8859-1"),
            *("iso88591", "iso_8859-1", "iso_8859-1:1987", "iso-ir-100", "csisolatin1", "cp819"),
            *("ibm819", "x-cp1252", "windows-1252", "cp1252", "x-user-defined"),
        ),
        "cp1252",
    ),
    **dict.fromkeys(
        ("latin5", "l5", "iso-8859-9", "iso8859-9", "iso_8859-9", "x-cp1254"), "cp1254"
    ),
    **dict.fromkeys(("tis-620", "iso-8859-11", "iso8859-11", "windows-874", "dos-874"), "cp874"),
    **dict.fromkeys(
        ("gb2312", "gb_2312-80", "gb_2312", "gbk", "x-gbk", "chinese", "csgb2312", "cp936"),
        "gb18030",
    ),
    **dict.fromkeys(("big5", "big5-hkscs", "cn-big5", "x-x-big5", "csbig5"), "big5hkscs"),
    **dict.fromkeys(
        ("shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j", "ms932"), "cp932"
    ),
    **dict.fromkeys(
        ("euc-kr", "korean", "ks_c_5601-1987", "ks_c_5601-1989", "ksc5601", "windows-949"), "cp949"
    ),
    **dict.fromkeys(("utf-16", "utf-16le", "ucs-2", "unicode", "iso-10646-ucs-2"), "utf-16-le"),
    **dict.fromkeys(("utf-16be", "unicodefffe"), "utf-16-be"),
    **dict.fromkeys(("unicode-1-1-utf-8", "unicode11utf8", "x-unicode20utf8"), "utf-8"),
    **dict.fromkeys(("macintosh", "mac", "x-mac-roman"), "mac-roman"),
    **dict.fromkeys(("x-mac-cyrillic", "x-mac-ukrainian"), "mac-cyrillic"),
    **{f"x-cp{number}": f"cp{number}" for number in (1250, 1251, 1253, 1255, 1256, 1257, 1258)},
    "koi": "koi8-r",
    "koi8-ru": "koi8-u",
    "logical": "iso8859-8",
    "x-euc-jp": "euc_jp",
}

_DETECTABLE = [
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp874"),
    *("iso8859_2", "koi8_r", "koi8_u", "cp932", "euc_jp", "gb18030", "big5", "cp949", "mac_roman"),
]

_CHARSETS = frozenset(
    {
        *("utf-8", "utf-16-le", "utf-16-be", "cp866", "cp874", "koi8-r", "koi8-u", "mac-roman"),
        *("mac-cyrillic", "gb18030", "big5hkscs", "euc_jp", "iso2022_jp", "cp932", "cp949"),
        *(f"cp{number}" for number in range(1250, 1259)),
        *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
    }
)
"""The charsets of the web (WHATWG). Python has more: rot13 is none, cp500 turns a page to noise."""


def codec_of(label: str | None) -> str | None:
    """Return the Python codec of a charset label on the web, None for an unknown label.

    >>> codec_of("Latin1"), codec_of("utf8"), codec_of("rot13"), codec_of("iso-8859-15")
    ('cp1252', 'utf-8', None, 'iso8859-15')
    """
    name = (label or "").strip().strip("\"'").lower()
    if not name or len(name) > 40 or not name.isascii():
        return None
    if name in _WEB_LABELS:
        return _WEB_LABELS[name]
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    if codec in _WEB_LABELS:
        return _WEB_LABELS[codec]
    return codec if codec in _CHARSETS else None
