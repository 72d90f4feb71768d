"""Character sets: wrong labels, labels of odd codecs, and bytes that fit none."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from crawld.simweb.hostile.case import STORED, HostileCase, failed, html, page

_TEXT = html("<p>characters äöü ß Ж 中" * 50)
_PLAIN = html("<p>plain characters" * 50)


def _labelled(
    name: str, label: str, body: Callable[[], bytes] = lambda: _PLAIN, *, quick: bool = False
) -> HostileCase:
    """Return a case whose Content-Type names a character set."""
    return page(name, body, content_type=f"text/html; charset={label}", quick=quick)


def _declared(name: str, declaration: str, body: Callable[[], bytes]) -> HostileCase:
    """Return a case whose Content-Type names none, but its head does."""
    return page(name, lambda: declaration.encode("latin-1") + body(), content_type="text/html")


# Python has codecs of these names that are no character sets.
_CODECS = (
    *("zlib", "bz2", "hex", "base64", "uu", "quopri", "rot13", "punycode", "idna", "undefined"),
    *("unicode_escape", "raw_unicode_escape", "mbcs", "utf-8-sig", "utf_7", "cp037", "hz"),
)

CASES: tuple[HostileCase, ...] = (
    _labelled("charset-cp500", "cp500", quick=True),
    *(_labelled(f"charset-{label.replace('_', '-')}", label) for label in _CODECS),
    page(
        "charset-zlib-bomb",
        lambda: zlib.compress(bytes(60_000_000)),
        content_type="text/html; charset=zlib",
        outcomes=STORED | failed("wrong_type"),
    ),
    _labelled("charset-punycode-long", "punycode", lambda: b"a-" + b"b9" * 200_000, quick=True),
    _labelled("charset-idna-long", "idna", lambda: b"xn--" + b"a." * 200_000),
    _labelled("charset-escapes", "unicode_escape", lambda: html("\\N{DIGIT ONE}" * 100_000)),
    _labelled("charset-utf7", "utf-7", lambda: b"+ADw-script+AD4-" * 50_000),
    _labelled("charset-utf16", "utf-16", lambda: _TEXT.decode().encode("utf-16-be")),
    _labelled("charset-utf16-odd", "utf-16le", lambda: _TEXT.decode().encode("utf-16-le")[:-1]),
    _labelled("charset-utf16-wrong", "utf-16", lambda: _PLAIN),
    _labelled("charset-utf32", "utf-32", lambda: _TEXT.decode().encode("utf-32")),
    _labelled("charset-invalid", "utf-8", lambda: html(b"\xff\xfe\x80" * 700_000)),
    _labelled("charset-overlong", "utf-8", lambda: html(b"\xc0\xaf\xed\xa0\x80" * 400_000)),
    _labelled("charset-iso2022", "iso-2022-jp", lambda: html(b"\x1b$B\x1b(B" * 400_000)),
    _labelled("charset-gb18030", "gb18030", lambda: html(b"\x81\x30" * 500_000)),
    _labelled("charset-shift-jis", "shift_jis", lambda: html(b"\x83" * 900_000)),
    _labelled("charset-unknown", "no-such-set"),
    _labelled("charset-empty", '""'),
    _labelled("charset-path", "../../etc/passwd"),
    _labelled("charset-long", "x" * 40_000),
    _labelled("charset-list", "; ".join(["charset=utf-8"] * 3_000)),
    _labelled("charset-quotes", '"' + '\\"' * 15_000),
    _labelled("charset-semicolons", ";" * 50_000),
    _declared("charset-declared-cp500", "<meta charset=cp500>", lambda: _PLAIN),
    _declared("charset-declared-user", "<meta charset=x-user-defined>", lambda: _TEXT),
    _declared("charset-declared-many", "<meta charset=utf-16>" * 50_000, lambda: _TEXT),
    _declared("charset-declared-blanks", "<meta charset" + " " * 900_000 + "=x>", lambda: _TEXT),
    _declared("charset-bom", "\xff\xfe", lambda: _PLAIN),
    _declared("charset-none", "", lambda: b"<p>" + bytes(range(128, 256)) * 20_000),
    _declared("charset-guess", "", lambda: _mixed()),
    _declared("charset-xml", "<?xml version='1.0' encoding='" + "u" * 90_000, lambda: _TEXT),
)


def _mixed() -> bytes:
    """Return text whose parts are in several character sets, which is costly to guess."""
    sets = ("utf-8", "cp1251", "shift_jis", "gb18030", "koi8-r", "latin-1", "utf-16-le", "big5")
    text = "Жизнь 中文 жизнь"
    return b"<p>".join(text.encode(name, "ignore") * 60 for name in sets * 200)
