r"""Canonical URLs: the form that crawld requests and uses as the key of a page.

URLs are parsed by the WHATWG URL Standard (with can_ada), as in a browser. Fourteen rules then
choose one spelling among those that every server must treat alike. A rule that could merge two
different pages is wrong, so these stay as written: order and repetition of query parameters, `+`,
case of the path, double and trailing slashes, `www.`, index pages and the scheme.

     1. http and https only.                           ftp://a.org/          refused
     2. The fragment is dropped.                       http://a.org/x#y   -> http://a.org/x
     3. Name and password are dropped.                 http://u:p@a.org/  -> http://a.org/
     4. The default port is dropped; port 0 refused.   http://a.org:80/   -> http://a.org/
     5. An empty query is dropped.                     http://a.org/x?    -> http://a.org/x
     6. Hexadecimal digits of %XX become upper case.   http://a.org/%c3   -> http://a.org/%C3
     7. %XX of an unreserved character (RFC 3986,      http://a.org/%7Eb  -> http://a.org/~b
        section 2.3) is decoded, no other: %2F, %3F,   http://a.org/b%2Fc    stays
        %2B and %25 are data. A stray `%` stays, and   http://a.org/%4%31    stays
        nothing that follows it may complete a code.
     8. Characters no URI may hold raw (^ ` { | } \)   http://a.org/a|b   -> http://a.org/a%7Cb
        are encoded; some servers answer 400 to them.
     9. Dot segments are resolved; a backslash before  http://a.org\b\..\c -> http://a.org/c
        the query is a slash (WHATWG).
    10. A host is lower case, IDNA by WHATWG and by    http://FAẞ.de./ -> http://xn--fa-hia.de/
        current tables, without its trailing dot;      http://xn--a.org/     refused
        labels of 1 to 63 letters, digits, `-`, `_`;   http://a..org/        refused
        numeric forms are IPv4.                        http://0x7f.1/     -> http://127.0.0.1/
    11. Tabs and line ends are removed, blanks at both "\thttp://a.org/b\nc " -> http://a.org/bc
        ends too, other control characters encoded.    http://a.org/b\x01 -> http://a.org/b%01
    12. At most `MAX_URL_LENGTH` characters; a raw text over `MAX_RAW_LENGTH` is not parsed.
    13. Tracking parameters are dropped by name.      http://a.org/?utm_id=4&x -> http://a.org/?x
    14. Session ids are dropped from path and query   http://a.org/x;sid=0b2c7d1e9f3a4c5d
        if their name and value are those of one.                     -> http://a.org/x

Rules 13 and 14 are in `crawld.core.url_parameters`, also the order of parameters, which sites may
declare meaningless. Links on pages, redirects, sitemaps and what readers ask for all pass the same
rules, so the mirror answers under every spelling; the text of pages keeps theirs.

Invariants: `canonicalize` is idempotent. `resolve` returns the same results, faster. A canonical
URL is ASCII. A change of these rules changes the keys of stored pages: raise `RULES_VERSION`, and
the job `canonical_urls` renames them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache

import can_ada
import xxhash
from publicsuffixlist import PublicSuffixList

from crawld.core.url_parameters import without_markers
from crawld.core.url_parse import BaseUrl, parse
from crawld.core.value_type import value_type
from crawld.errors import InvalidUrlError

RULES_VERSION = 2
"""Raised with each change of the rules; 1: rules 1 to 12."""

MAX_URL_LENGTH = 8_000
"""Longest canonical URL: the length every server should support (RFC 9110 section 4.1)."""

MAX_RAW_LENGTH = 32_768
"""Longest text that is parsed; it excludes data: links of megabytes."""

DEFAULT_PORTS = {"http": 80, "https": 443}

_WEB = ("http://", "https://")

# Matches what rules 2 to 8 can still change after the origin of a URL written by can_ada: a raw
# character of rule 8, a fragment, an empty query, a `%` that is stray, lower case or the code of an
# unreserved character (2D 2E, 30-39, 41-5A, 5F, 61-7A, 7E).
_NOT_CANONICAL = re.compile(
    r"[#^`{|}\\]|\?\Z|%(?![0-9A-F]{2})|%(?:2[DE]|3[0-9]|[46][1-9A-F]|5[0-9AF]|7[0-9AE])"
).search

_PERCENT_CODE = re.compile(r"%[0-9A-Fa-f]{2}")
_STRAY_BEFORE = re.compile(r".?%\Z|%[0-9A-Fa-f]\Z").match
_RAW = re.compile(r"[\^`{|}\\]")
_HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*|\[[0-9a-f:.]+\]").fullmatch
_IPV4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}").fullmatch
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_MAX_HOST_LENGTH = 253
_SHOWN = 80


@value_type
class Url:
    """A canonical URL and its parts.

    Attributes:
        scheme: "http" or "https".
        host: host name or address; IPv6 without brackets.
        port: the port to connect to; the scheme's default if the URL names none.
        origin: scheme, host and port as written, default port omitted.
        target: path and query as sent on the request line.
    """

    canonical: str
    scheme: str
    host: str
    port: int
    origin: str
    target: str


def canonicalize(raw: str, base: str | None = None, *, of_page: bool = True) -> str:
    """Return the canonical form of a URL, or of a reference relative to an absolute `base`.

    Args:
        of_page: False: the URL is that of a service, whose parameters all stay (rules 13 and 14).

    Raises:
        InvalidUrlError: crawld cannot visit this URL; the message quotes its beginning.
    """
    if len(raw) > MAX_RAW_LENGTH:
        raise _invalid(raw, f"is longer than {MAX_RAW_LENGTH} characters")
    try:
        found, host = parse(raw) if base is None else BaseUrl(base).join(raw)
    except (ValueError, TypeError):  # TypeError: a lone surrogate has no UTF-8 form
        raise _invalid(raw, "is not a URL") from None
    if not found.href.startswith(_WEB):
        scheme = found.protocol[:20]
        del found  # see `_invalid`
        raise _invalid(raw, f"has the scheme {scheme!r}")
    canonical = _apply_rules(found, host, of_page=of_page)
    if canonical is None:
        del found
        raise _invalid(raw, "has no usable host or port, or is too long")
    return canonical


def canonicalize_given(raw: str, *, of_page: bool = True) -> str:
    """Return the canonical form of a URL that the operator gave; arguments as of `canonicalize`.

    A password in it would be in process lists, configs and their copies, and would never be sent,
    because a canonical URL has none: so it is refused instead of dropped.

    Raises:
        InvalidUrlError: as `canonicalize`, or the URL has a user name or password.
    """
    try:
        canonical = canonicalize(raw, of_page=of_page)
    except InvalidUrlError as error:
        raise InvalidUrlError(error.message, hint=suggest_url(raw, error)) from None
    parsed, _ = parse(raw)
    has_credentials = parsed.username or parsed.password
    del parsed  # see `_invalid`
    if has_credentials:
        raise InvalidUrlError(
            f"{hide_credentials(raw)[:_SHOWN]!r} has a user name or password, which belong into a "
            "headers_file",
            hint="remove them; the file has a line `Basic-Auth: user:password`, mode 0600",
        )
    return canonical


def suggest_url(raw: str, error: InvalidUrlError) -> str:
    """Return what to write instead of a text that is no URL: with https://, or as its error says.

    >>> suggest_url("docs.example.org/a", InvalidUrlError("no scheme"))
    'did you mean https://docs.example.org/a?'
    >>> suggest_url("htps://docs.example.org", InvalidUrlError("unknown scheme"))
    'did you mean https://docs.example.org/?'
    >>> suggest_url("localhost:8080", InvalidUrlError("unknown scheme"))
    'did you mean http://localhost:8080/?'
    """
    text = raw.strip()[:MAX_URL_LENGTH]
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "", text.lstrip("/")
        if not _HOST_START.match(rest):
            return error.hint
    elif not scheme or not set(scheme.lower()) <= set("https:/"):
        return error.hint
    if "@" in rest:
        return error.hint
    local = rest.startswith(("localhost", "127.", "[::1]"))
    try:
        meant = canonicalize(f"{'http' if local else 'https'}://{rest}")
        return f"did you mean {meant[:_SHOWN]}?"
    except InvalidUrlError:
        return error.hint


_HOST_START = re.compile(
    r"localhost\b|\[[0-9A-Fa-f:]{1,45}\]|[^/?#:\s]{1,253}\.[^/?#:\s]|[^/?#:\s]{1,253}:[0-9]"
)


def hide_credentials(text: str) -> str:
    """Return a text that may be a URL, without what may be a user name and password in it.

    >>> hide_credentials("https://user:pass/word@example.org/a")
    'https://***@example.org/a'
    """
    before, at, after = text.rpartition("@")
    scheme, slashes, _ = before.partition("//")
    # Without "//" it is a mail address or the like, unless there is a colon: "https:user:pw@host".
    if not at or not (slashes or ":" in before):
        return text
    return f"{scheme}//***@{after}" if slashes else f"***@{after}"


def resolve(base: str, hrefs: Iterable[str]) -> list[str]:
    """Return the canonical URLs of a page's links, each once, in order of first appearance.

    Links that cannot be visited are left out. `base` is the page's URL, or its `<base>`.

    Raises:
        InvalidUrlError: `base` is not a URL.
    """
    join = resolver(base)
    # A dict keeps the order and drops repeats in one step.
    found = dict.fromkeys(map(join, dict.fromkeys(hrefs)))
    return [url for url in found if url is not None]


def resolver(base: str) -> Callable[[str], str | None]:
    """Return a function that canonicalizes a link of a page; it returns None for unusable links.

    Raises:
        InvalidUrlError: `base` is not a URL.
    """
    home = canonicalize(base)
    root = home[: _origin_end(home) + 1]
    origin_length = len(root)
    parsed = BaseUrl(home)
    join, join_plain = parsed.join, parsed.join_plain

    def resolved(raw: str) -> str | None:
        if len(raw) > MAX_RAW_LENGTH:
            return None
        try:
            if join_plain and raw.isascii() and "%" not in raw and "--" not in raw:
                url, host = join_plain(raw), None
            else:
                url, host = join(raw)
        except (ValueError, TypeError):
            return None
        href = url.href
        # On the page's own origin, host and port are known to be valid.
        if (
            host is None
            and href.startswith(root)
            and len(href) <= MAX_URL_LENGTH
            and not _NOT_CANONICAL(href, origin_length)
        ):
            if "?" in href or ";" in href or "(" in href:
                return href[: origin_length - 1] + without_markers(href[origin_length - 1 :])
            return href
        return _apply_rules(url, host) if href.startswith(_WEB) else None

    return resolved


def _apply_rules(url: can_ada.URL, real_host: str | None, *, of_page: bool = True) -> str | None:
    """Apply rules 2 to 14 to a parsed http(s) URL; return None if it cannot be visited.

    Args:
        real_host: the host, if that of `url` stands in for it.
    """
    host = (url.hostname if real_host is None else real_host).removesuffix(".")
    port = url.port
    if port == "0" or len(host) > _MAX_HOST_LENGTH or not _HOST(host):
        return None
    target = url.pathname + url.search  # `search` is empty for a lone "?" (rule 5)
    if _NOT_CANONICAL(target):
        target = _RAW.sub(_percent_encode, _PERCENT_CODE.sub(_normalize_code, target))
    if of_page and ("?" in target or ";" in target or "(" in target):
        target = without_markers(target)
    text = f"{url.protocol}//{host}{':' + port if port else ''}{target}"
    return text if len(text) <= MAX_URL_LENGTH else None


def _normalize_code(code: re.Match[str]) -> str:
    text = code[0]
    character = chr(int(text[1:], 16))
    start, whole = code.start(), code.string
    # After a stray `%` or `%4` a decoded character could complete a code that was never there.
    if character in _UNRESERVED and not _STRAY_BEFORE(whole, max(start - 2, 0), start):
        return character
    return text.upper()


def _percent_encode(character: re.Match[str]) -> str:
    return f"%{ord(character[0]):02X}"


def _invalid(raw: str, why: str) -> InvalidUrlError:
    """Return the error for a URL.

    Whoever raises it drops its URL object first: the error keeps the frame, a cause in another
    library may keep the error to the end of the process, and nanobind then prints 20 lines.
    """
    return InvalidUrlError(
        f"{hide_credentials(raw)[:_SHOWN]!r} {why}",
        hint="a URL crawld can visit looks like https://example.org/page",
    )


def _origin_end(canonical: str) -> int:
    # A canonical URL always has a path: the first slash after "http(s)://" begins it.
    return canonical.index("/", 8)


def split_url(canonical: str) -> Url:
    """Split a canonical URL; for any other text the parts are meaningless."""
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
    """Return the path and query of a canonical URL."""
    return canonical[_origin_end(canonical) :]


def other_port(canonical: str) -> int | None:
    """Return the port of a canonical URL, None if it is the default one of its scheme.

    >>> other_port("https://a.org/b"), other_port("http://a.org:8080/b"), other_port("http://a.org:443/")
    (None, 8080, 443)
    """
    url = split_url(canonical)
    return None if url.port == DEFAULT_PORTS[url.scheme] else url.port


def server_name(canonical: str) -> str:
    """Return the host of a canonical URL, with the port if it is no default one.

    Another port is another server: only the default ports of http and https are one.

    >>> server_name("https://a.org/b"), server_name("http://a.org:8080/b")
    ('a.org', 'a.org:8080')
    >>> server_name("https://[::1]/"), server_name("https://[::1]:8080/")
    ('::1', '[::1]:8080')
    """
    if other_port(canonical) is None:
        return split_url(canonical).host
    return canonical[: _origin_end(canonical)].partition("://")[2]


def url_hash(canonical: str) -> int:
    """Return the 64-bit xxh3 of a canonical URL as a signed integer, for SQLite."""
    return _signed(xxhash.xxh3_64_intdigest(canonical.encode()))


def second_hash(canonical: str) -> int:
    """Return another 64-bit hash of a canonical URL (xxh64), as a signed integer."""
    return _signed(xxhash.xxh64_intdigest(canonical.encode()))


def url_keys(canonical: str) -> tuple[int, int]:
    """Return the key of a URL within its host, and its key where another URL has the first."""
    return url_hash(canonical), second_hash(canonical)


def _signed(value: int) -> int:
    return value if value < 1 << 63 else value - (1 << 64)


@lru_cache(maxsize=65_536)
def registrable_domain(host: str) -> str:
    """Return the registrable domain of a host, e.g. "example.co.uk"; an address is its own.

    Source: Public Suffix List, with its private section: two users of one hosting service are two
    owners. A host that is itself a public suffix is its own domain.
    """
    if ":" in host or _IPV4(host):
        return host
    return private_suffix(host) or host


def private_suffix(host: str) -> str | None:
    """Return the registrable domain of a host name; None if it is a public suffix itself."""
    found: str | None = _suffixes().privatesuffix(host)
    return found


@lru_cache(maxsize=65_536)
def is_listed_suffix(host: str) -> bool:
    """Whether the public suffix list knows the top-level domain of a host name."""
    return _suffixes().publicsuffix(host, accept_unknown=False) is not None


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()  # 10,000 rules: read when they are needed, and once
