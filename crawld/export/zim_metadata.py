"""What a ZIM file tells about itself: title, description, language, icon; from options or the site.

Source: wiki.openzim.org/wiki/Metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from crawld.core.content import html
from crawld.core.url import resolver, split_url
from crawld.errors import OperatorError
from crawld.export.source import ExportRequest
from crawld.export.zim_icon import MAX_ICON_BYTES, make_icon, plain_icon

TITLE_CHARACTERS: Final = 30
DESCRIPTION_CHARACTERS: Final = 80
_MAX_ICONS: Final = 8
"""Icons of a page that are tried."""

_CODES: Final = (
    "ar:ara bg:bul bn:ben ca:cat cs:ces cy:cym da:dan de:deu el:ell en:eng eo:epo es:spa et:est"
    " eu:eus fa:fas fi:fin fr:fra ga:gle gl:glg he:heb hi:hin hr:hrv hu:hun hy:hye id:ind is:isl"
    " it:ita ja:jpn ka:kat kk:kaz ko:kor la:lat lt:lit lv:lav mk:mkd ms:msa nb:nob nl:nld nn:nno"
    " no:nor pl:pol pt:por ro:ron ru:rus sk:slk sl:slv sq:sqi sr:srp sv:swe sw:swa ta:tam te:tel"
    " th:tha tr:tur uk:ukr ur:urd uz:uzb vi:vie zh:zho"
)
_LANGUAGES: Final = dict(pair.split(":") for pair in _CODES.split())
"""ISO 639-3 codes, as in ZIM files, by ISO 639-1 codes, as in HTML."""


class ZimMetadata(NamedTuple):
    """Attributes: `language`: ISO 639-3; `icon`: PNG of 48 × 48 pixels."""

    title: str
    description: str
    language: str
    icon: bytes


class MainPage(NamedTuple):
    """The page that readers see first.

    Attributes:
        head: the start of its HTML, as text.
    """

    entry: str
    url: str
    title: str | None
    head: str


def read_options(request: ExportRequest) -> ZimMetadata:
    """Return what the options give; empty where the site decides.

    Raises:
        OperatorError: the language is unknown, or the icon cannot be read.
    """
    return ZimMetadata(
        _one_line(request.title or "", TITLE_CHARACTERS),
        _one_line(request.description or "", DESCRIPTION_CHARACTERS),
        _given_language(request.language) if request.language else "",
        _given_icon(request) if request.icon else b"",
    )


def complete(
    given: ZimMetadata, main: MainPage, read_body: Callable[[str], bytes | None]
) -> ZimMetadata:
    """Fill in from the main page what the options do not give.

    Args:
        given: from `read_options`.
        main: the main page.
        read_body: returns the stored body of a canonical URL, None if there is none.
    """
    page = html.parse(main.head)
    host = split_url(main.url).host
    icon = given.icon
    if not icon:
        bodies = map(read_body, _icon_urls(main.url, page.base, page.tree))
        icon = next((made for body in bodies if body and (made := make_icon(body))), plain_icon())
    language = page.lang.partition("-")[0].lower()
    return ZimMetadata(
        given.title or _one_line(main.title or host, TITLE_CHARACTERS),
        given.description
        or _one_line(_described(page.tree), DESCRIPTION_CHARACTERS)
        or _one_line(f"Mirror of {main.url}", DESCRIPTION_CHARACTERS),
        given.language or _LANGUAGES.get(language, "eng"),
        icon,
    )


def _one_line(text: str, characters: int) -> str:
    """Return text in one line, cut at a word with an ellipsis."""
    # A title of 10 MB is cut before it is split.
    line = " ".join(text[: 20 * characters].split())
    if len(line) <= characters:
        return line
    cut = line[: characters - 1]
    head, blank, _ = cut.rpartition(" ")
    return (head if blank and len(head) > characters // 2 else cut) + "…"


def _described(tree: LexborHTMLParser) -> str:
    node = tree.css_first('meta[name="description" i][content]') or tree.css_first(
        'meta[property="og:description" i][content]'
    )
    return (node.attributes.get("content") or "") if node else ""


def _icon_urls(url: str, base: str | None, tree: LexborHTMLParser) -> Iterator[str]:
    """Return the URLs of icons of a page: those for devices first, which are larger."""
    resolved = resolver(url)
    if base and (absolute := resolved(base)):
        resolved = resolver(absolute)
    nodes = tree.css('link[rel~="apple-touch-icon" i][href],link[rel~="icon" i][href]')
    hrefs = [node.attributes.get("href") or "" for node in nodes[: 4 * _MAX_ICONS]]
    hrefs.append("/favicon.ico")
    return islice(filter(None, map(resolved, hrefs)), _MAX_ICONS)


def _given_language(text: str) -> str:
    code = text.strip().lower()
    if code in _LANGUAGES:
        return _LANGUAGES[code]
    if len(code) == 3 and code.isascii() and code.isalpha():
        return code
    raise OperatorError(
        f"--language {text} is not a language code", hint="give one as en or eng (ISO 639)"
    )


def _given_icon(request: ExportRequest) -> bytes:
    assert request.icon is not None
    try:
        with request.icon.open("rb") as file:
            data = file.read(MAX_ICON_BYTES + 1)
    except OSError as error:
        raise OperatorError(f"--icon {request.icon} cannot be read: {error.strerror}") from error
    made = make_icon(data)
    if made is None:
        raise OperatorError(
            f"--icon {request.icon} is no icon that crawld reads",
            hint="give a PNG without interlacing, or an ICO, of at most 512 × 512 pixels",
        )
    return made
