r"""The one spelling of a URL: what crawld asks for and the key under which it knows a page.

Reading follows the WHATWG URL Standard (by can_ada), so that a link leads where a browser would
go. Twelve rules then choose one spelling among those that every server must treat alike. A rule
that could merge two different pages is wrong: order and repetition of query parameters, `+`, case
of the path, double and trailing slashes, `www.`, index pages and the scheme are left alone.

     1. http and https only.                           ftp://a.org/          refused
     2. The fragment is dropped.                       http://a.org/x#y   -> http://a.org/x
     3. Name and password are dropped.                 http://u:p@a.org/  -> http://a.org/
     4. The default port is dropped; port 0 refused.   http://a.org:80/   -> http://a.org/
     5. An empty query is dropped.                     http://a.org/x?    -> http://a.org/x
     6. Hexadecimal digits of %XX become upper case.   http://a.org/%c3   -> http://a.org/%C3
     7. %XX of an unreserved character (RFC 3986,      http://a.org/%7Eb  -> http://a.org/~b
        section 2.3) is decoded, no other: %2F, %3F,   http://a.org/b%2Fc    stays
        %2B and %25 are data. A stray `%` stays, and   http://a.org/%4%31    stays
        nothing that follows it may complete a triple.
     8. Characters no URI may hold raw (^ ` { | } \)   http://a.org/a|b   -> http://a.org/a%7Cb
        are encoded; some servers answer 400 to them.
     9. Dot segments are resolved; a backslash before  http://a.org\b\..\c -> http://a.org/c
        the query is a slash (WHATWG).
    10. A host is lower case, IDNA by WHATWG, without  http://BÜCHER.de./ -> http://xn--bcher-kva.de/
        its trailing dot; labels of 1 to 63 letters,   http://a..org/        refused
        digits, `-`, `_`; numeric forms are IPv4.      http://0x7f.1/     -> http://127.0.0.1/
    11. Tabs and line ends are removed, blanks at both "\thttp://a.org/b\nc " -> http://a.org/bc
        ends too, other control characters encoded.    http://a.org/b\x01 -> http://a.org/b%01
    12. At most `MAX_URL_LENGTH` characters; a raw text over `MAX_RAW_LENGTH` is not even read.

Invariants: `canonicalize` is idempotent; `resolve` says what `canonicalize` says, faster; a
canonical text is ASCII. A change of these rules moves keys: it needs a new
`CANONICAL_RULES_VERSION`, by which the store knows that it must re-key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

import can_ada
import xxhash
from publicsuffixlist import PublicSuffixList

from crawld.errors import InvalidUrlError

MAX_URL_LENGTH = 8_000
"""Longest canonical URL: what RFC 9110 section 4.1 asks every server to support."""

MAX_RAW_LENGTH = 32_768
"""Longest text worth parsing; data: links of megabytes end here."""

DEFAULT_PORTS = {"http": 80, "https": 443}

_WEB = ("http://", "https://")

# Whatever rules 2 to 8 could still change behind the origin of a text can_ada wrote: a raw
# character of rule 8, a fragment, a query that is empty, a `%` that is stray, lower case or the
# code of an unreserved character (2D 2E, 30-39, 41-5A, 5F, 61-7A, 7E).
_UNSETTLED = re.compile(
    r"[#^`{|}\\]|\?\Z|%(?![0-9A-F]{2})|%(?:2[DE]|3[0-9]|[46][1-9A-F]|5[0-9AF]|7[0-9AE])"
).search

_TRIPLE = re.compile(r"%[0-9A-Fa-f]{2}")
_STRAY_BEFORE = re.compile(r".?%\Z|%[0-9A-Fa-f]\Z").match
_RAW = re.compile(r"[\^`{|}\\]")
_HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*|\[[0-9a-f:.]+\]").fullmatch
_IPV4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}").fullmatch
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_MAX_HOST_LENGTH = 253


@dataclass(frozen=True, slots=True)
class Url:
    """A canonical URL and the parts a fetch needs.

    Attributes:
        canonical: the whole text.
        scheme: "http" or "https".
        host: host name or address; IPv6 without brackets.
        port: the port to connect to, the scheme's own where the text names none.
        origin: scheme, host and port as written, default port left out.
        target: path and query as sent on the request line.
    """

    canonical: str
    scheme: str
    host: str
    port: int
    origin: str
    target: str


def canonicalize(raw: str, base: str | None = None) -> str:
    """Return the canonical spelling of a URL.

    Args:
        raw: an absolute URL, or any reference where `base` is given.
        base: the absolute URL that relative references start from.

    Raises:
        InvalidUrlError: no URL crawld can visit; the message quotes its beginning.
    """
    if len(raw) > MAX_RAW_LENGTH:
        raise _refused(raw, f"is longer than {MAX_RAW_LENGTH} characters")
    try:
        found = can_ada.parse(raw) if base is None else can_ada.parse(base) + raw
    except (ValueError, TypeError):  # TypeError: a lone surrogate has no UTF-8 form
        raise _refused(raw, "is not a URL") from None
    href = found.href
    if not href.startswith(_WEB):
        raise _refused(raw, f"has the scheme {found.protocol[:20]!r}")
    settled = _settle(found)
    if settled is None:
        raise _refused(raw, "has no usable host or port, or is too long")
    return settled


def resolve(base: str, hrefs: Iterable[str]) -> list[str]:
    """Return the canonical URLs that the links of a page lead to.

    Args:
        base: the page's URL, or what its `<base>` says.
        hrefs: the links as written, in order.

    Returns:
        Each URL once, in order of first appearance; what no visit could reach is left out.

    Raises:
        InvalidUrlError: `base` itself is none.
    """
    join = resolver(base)
    # A dict keeps the order and drops repetitions in one step.
    found = dict.fromkeys(join(raw) for raw in dict.fromkeys(hrefs))
    return [url for url in found if url is not None]


def resolver(base: str) -> Callable[[str], str | None]:
    """Return what makes a link of a page canonical, None where no visit could reach it.

    Args:
        base: the page's URL, or what its `<base>` says.

    Raises:
        InvalidUrlError: `base` itself is none.
    """
    home = canonicalize(base)
    root = home[: _origin_end(home) + 1]
    origin_length = len(root)
    join = can_ada.parse(home).__add__

    def resolved(raw: str) -> str | None:
        if len(raw) > MAX_RAW_LENGTH:
            return None
        try:
            url = join(raw)
        except (ValueError, TypeError):
            return None
        href = url.href
        # On the page's own origin, host and port are known to be good.
        if (
            href.startswith(root)
            and len(href) <= MAX_URL_LENGTH
            and not _UNSETTLED(href, origin_length)
        ):
            return href
        return _settle(url) if href.startswith(_WEB) else None

    return resolved


def _settle(url: can_ada.URL) -> str | None:
    """Apply rules 2 to 12 to a parsed http(s) URL; None where it cannot be visited."""
    host = url.hostname.removesuffix(".")
    port = url.port
    if port == "0" or len(host) > _MAX_HOST_LENGTH or not _HOST(host):
        return None
    target = url.pathname + url.search  # `search` is empty for a lone "?" (rule 5)
    if _UNSETTLED(target):
        target = _RAW.sub(_encoded, _TRIPLE.sub(_respelled, target))
    text = f"{url.protocol}//{host}{':' + port if port else ''}{target}"
    return text if len(text) <= MAX_URL_LENGTH else None


def _respelled(triple: re.Match[str]) -> str:
    text = triple[0]
    character = chr(int(text[1:], 16))
    start, whole = triple.start(), triple.string
    # After a stray `%` or `%4` a decoded character could complete a triple that was never there.
    if character in _UNRESERVED and not _STRAY_BEFORE(whole, max(start - 2, 0), start):
        return character
    return text.upper()


def _encoded(character: re.Match[str]) -> str:
    return f"%{ord(character[0]):02X}"


def _refused(raw: str, why: str) -> InvalidUrlError:
    return InvalidUrlError(
        f"{raw[:80]!r} {why}", hint="a URL crawld can visit looks like https://example.org/page"
    )


def _origin_end(canonical: str) -> int:
    # A canonical text always has its path: the first slash after "http(s)://" begins it.
    return canonical.index("/", 8)


def parse(canonical: str) -> Url:
    """Split a text that is already canonical; any other text gives parts that mean nothing."""
    end = _origin_end(canonical)
    origin = canonical[:end]
    scheme, _, netloc = origin.partition("://")
    if netloc[0] == "[":
        host, _, rest = netloc[1:].partition("]")
        port = rest[1:]
    else:
        host, _, port = netloc.partition(":")
    number = int(port) if port else DEFAULT_PORTS[scheme]
    return Url(canonical, scheme, host, number, origin, canonical[end:])


def target_of(canonical: str) -> str:
    """Return path and query of a canonical URL."""
    return canonical[_origin_end(canonical) :]


def url_hash(canonical: str) -> int:
    """Return the 64-bit xxh3 of a canonical URL as a signed integer, as SQLite keeps it."""
    value = xxhash.xxh3_64_intdigest(canonical.encode())
    return value if value < 1 << 63 else value - (1 << 64)


@lru_cache(maxsize=65_536)
def registrable_domain(host: str) -> str:
    """Return the domain one owner registered, e.g. "example.co.uk"; an address is its own.

    Source: Public Suffix List, with its private section: two users of one hosting service
    are two owners. A host that is itself a public suffix is its own domain.
    """
    if ":" in host or _IPV4(host):
        return host
    domain: str | None = _suffixes().privatesuffix(host)
    return domain or host


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()
