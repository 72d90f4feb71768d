"""Types of config values, each validated with a plain error message.

Every check raises a `ValueError` that states what is allowed, worded to follow the key and its
value. Rules, hosts and quiet hours are checked by `core/` itself, so that a config that loads also
works.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, cast
from zoneinfo import available_timezones

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from crawld.core.hosts import ANY, BELOW
from crawld.core.notify.rule import search_pattern
from crawld.core.politeness import DAY_S, QuietHours
from crawld.core.revisit.names import NAMES as POLICIES
from crawld.core.scope import RULE_KINDS, ScopeRule
from crawld.core.url import canonicalize, canonicalize_given, split_url
from crawld.errors import ConfigError, InvalidUrlError
from crawld.memory import LEAST_BYTES, MIB

RuleKind = Literal["prefix", "glob", "regex"]

ROUNDED = 1e-2
"""Part of a request a day that rounding a rate may take away."""

_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d"
_QUIET = re.compile(rf"({_TIME})-({_TIME}|24:00)")
_MAIL = re.compile(r"(?:mailto:)?[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+")
_HOME_PAGE = re.compile(r"https?://(?![^/?#]*@)[A-Za-z0-9\[][!-'*-~]*", re.IGNORECASE)
_PROXY = re.compile(r"http://([^/?#@\s]+):([0-9]{1,5})/?", re.IGNORECASE)
_CREDENTIALS = re.compile(r"(?:prefix|glob):[^/]*//[^/?#]*@")
_NO_HOST = re.compile(r"[\s/?#@\\]")
_SITE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PART_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_TITLE_URL = re.compile(r"https?://[^/?#{}@\s]+/[^{}\s]*\{title\}[^{}\s]*", re.IGNORECASE)
_LISTEN = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]*)):([0-9]{1,5})")
_SIZE = re.compile(r"([0-9]{1,16}) ?(|B|[KMGT](?:i?B)?)")
_SIZE_UNITS = ("B", "K", "M", "G", "T")
_CONTENT_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+*-]+/[A-Za-z0-9!#$&^_.+*-]+")


def _absolute(path: Path, info: ValidationInfo) -> Path:
    if path == Path() or "\0" in str(path):
        raise ValueError("must be a path")
    try:
        path = path.expanduser()
    except RuntimeError:
        raise ValueError("names a home directory that does not exist") from None
    # Paths are relative to the config file, not to the working directory.
    directory = (info.context or {}).get("directory")
    return path if directory is None else Path(directory) / path


def _contact(text: str) -> str:
    if not (_MAIL.fullmatch(text) or _HOME_PAGE.fullmatch(text)):
        raise ValueError("must be an e-mail address or the http(s) address of a page about you")
    return text


def parse_rule(text: str) -> ScopeRule:
    """Return the scope rule of a `kind:pattern` text.

    Raises:
        ConfigError: unknown kind, or invalid pattern.
    """
    kind, _, pattern = text.partition(":")
    return ScopeRule(cast("RuleKind", kind), pattern)


def _rule(text: str) -> str:
    if not text.startswith(tuple(f"{kind}:" for kind in RULE_KINDS)):
        raise ValueError('must be "prefix:...", "glob:..." or "regex:..."')
    if _CREDENTIALS.search(text):
        raise ValueError("must not contain a user name or password")
    try:
        parse_rule(text)
    except ConfigError as error:
        raise ValueError(f"is not valid: {error.message}; {error.hint}") from None
    return text


def _quiet(text: str) -> str:
    match = _QUIET.fullmatch(text)
    if match is None or match[1] == match[2]:
        raise ValueError('must be "HH:MM-HH:MM" with two different times')
    return text


def _quiet_hours(texts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        parse_quiet_hours(texts)
    except ConfigError as error:
        raise ValueError(f"is not valid: {error.message}; {error.hint}") from None
    return texts


def parse_quiet_hours(texts: tuple[str, ...], utc_offset_s: int = 0) -> QuietHours:
    """Return the quiet hours of `HH:MM-HH:MM` texts, in local time `utc_offset_s` ahead of UTC.

    Raises:
        ConfigError: they leave no time of the day.
    """
    return QuietHours(tuple(_span(text) for text in texts), utc_offset_s)


def _span(text: str) -> tuple[int, int]:
    start, end = ((int(part[:2]) * 60 + int(part[3:])) * 60 for part in text.split("-"))
    return start, end


def _timezone(name: str) -> str:
    # UTC works without a time zone database, which a small container may lack.
    if name != "UTC" and name not in available_timezones():
        raise ValueError('must be a time zone such as "UTC" or "Europe/Paris"')
    return name


def _host(text: str) -> str:
    bare = text.strip("[]")
    try:
        if _NO_HOST.search(text):
            raise ValueError
        return split_url(
            canonicalize(f"http://[{bare}]/" if ":" in bare else f"http://{bare}/")
        ).host
    except ValueError:
        raise ValueError('must be a host name or address, such as "docs.example.org"') from None


def _host_pattern(text: str) -> str:
    if text == ANY:
        return text
    below = BELOW if text.startswith(BELOW) else ""
    return below + _host(text.removeprefix(below))


def _proxy(text: str) -> str:
    match = _PROXY.fullmatch(text)
    if match is None or not 0 < int(match[2]) < 65_536:
        raise ValueError("must be http://host:port, without a name or password")
    return f"http://{_host(match[1])}:{match[2]}"


def _content_type(text: str) -> str:
    if not _CONTENT_TYPE.fullmatch(text):
        raise ValueError('must be a media type such as "text/html" or "image/*"')
    return text.lower()


def web_url(text: str) -> str:
    """Return the canonical form of a URL of a service that the operator gave.

    Raises:
        ValueError: it is not an http(s) URL, or has a user name or password.
    """
    try:
        return canonicalize_given(text, of_page=False)
    except InvalidUrlError as error:
        raise ValueError(f"must be an http(s) URL: {error.message}") from None


def _web_origin(text: str) -> str:
    url = split_url(web_url(text))
    if url.target != "/":
        raise ValueError('must be scheme, host and port only: "https://www.example.org"')
    return url.origin


def _public_url(text: str) -> str:
    url = split_url(web_url(text))
    if "?" in url.target:
        raise ValueError('must have no query: "https://mirror.example.org"')
    return f"{url.origin}{url.target}".rstrip("/")


def _mail_address(text: str) -> str:
    if not _MAIL.fullmatch(text) or text.lower().startswith("mailto:") or len(text) > 254:
        raise ValueError('must be a mail address such as "you@example.org", without a name')
    return text


def _clock_time(text: str) -> str:
    if not re.fullmatch(_TIME, text):
        raise ValueError('must be a time of day "HH:MM"')
    return text


def _search_pattern(text: str) -> str:
    try:
        search_pattern(text)
    except ConfigError as error:
        raise ValueError(f"{error.message}; {error.hint}") from None
    return text


def _title_url(text: str) -> str:
    if not _TITLE_URL.fullmatch(text):
        raise ValueError('must be an http(s) URL with "{title}" once, after the host')
    return text


def _site_name(text: str) -> str:
    if not _SITE_NAME.fullmatch(text):
        raise ValueError("must be up to 64 letters, digits, dots, dashes or underscores")
    return text


def is_part_name(text: str) -> bool:
    """Whether a text can name a plug-in, or a part that it supplies."""
    return _PART_NAME.fullmatch(text) is not None


def _part(text: str) -> str:
    if not all(map(is_part_name, text.split(":", 1))):
        raise ValueError('must be a name, or "PLUGIN:NAME" for what a plug-in supplies')
    return text


def _policy(text: str) -> str:
    plugin, colon, name = text.partition(":")
    if text in POLICIES or (colon and is_part_name(plugin) and is_part_name(name)):
        return text
    names = ", ".join(POLICIES)
    raise ValueError(f'must be one of {names}, or "PLUGIN:NAME" for that of a plug-in')


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise ValueError('must be an IP address such as "192.0.2.7" or "2001:db8::7"') from None


def parse_listen(text: str) -> tuple[str, int]:
    """Return the address and port of a `HOST:PORT` text; an empty host is loopback.

    Raises:
        ValueError: not such a text.
    """
    match = _LISTEN.fullmatch(text)
    if match is None or int(match[3]) > 65_535:
        raise ValueError('must be an address and a port: "127.0.0.1:8080", "[::1]:8080"')
    host = match[1] or match[2]
    return ("127.0.0.1" if host in {"", "localhost"} else _address(host)), int(match[3])


def _listen(text: str) -> str:
    parse_listen(text)
    return text


def _request_rate(requests_per_s: float) -> float:
    if not requests_per_s * DAY_S >= 1.0 - ROUNDED:
        raise ValueError("must be at least one request a day, 0.0000116")
    return requests_per_s


def _memory_size(value: object) -> int:
    size = value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        factor = 1000 if match[2][1:] == "B" else 1024
        size = int(match[1]) * factor ** _SIZE_UNITS.index(match[2][:1] or "B")
    if size is None:
        raise ValueError('must be a number of bytes, or a text such as "512 MiB" or "2 GB"')
    if not LEAST_BYTES <= size <= 2**53:
        raise ValueError(f"must be at least {LEAST_BYTES // MIB} MiB and at most 8 PiB")
    return size


Seconds = Annotated[float, Field(strict=True, ge=0, le=30 * 86_400, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, Field(strict=True, gt=0, le=30 * 86_400, allow_inf_nan=False)]
RevisitSeconds = Annotated[
    float, Field(strict=True, ge=60, le=10 * 365 * 86_400, allow_inf_nan=False)
]
RequestRate = Annotated[
    float,
    Field(strict=True, le=10_000, allow_inf_nan=False),
    AfterValidator(_request_rate),
]
ByteRate = Annotated[int, Field(strict=True, ge=10_000, le=2**40)]
Days = Annotated[float, Field(strict=True, gt=0, le=36_500, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, ge=1, le=2**53)]
MemorySize = Annotated[int, BeforeValidator(_memory_size)]
Depth = Annotated[int, Field(strict=True, ge=0, le=10_000)]
FilePath = Annotated[Path, AfterValidator(_absolute)]
Contact = Annotated[str, AfterValidator(_contact)]
RuleText = Annotated[str, AfterValidator(_rule)]
QuietText = Annotated[str, AfterValidator(_quiet)]
QuietHoursText = Annotated[tuple[QuietText, ...], AfterValidator(_quiet_hours)]
TimeZone = Annotated[str, AfterValidator(_timezone)]
HostName = Annotated[str, AfterValidator(_host)]
HostPattern = Annotated[str, AfterValidator(_host_pattern)]
ContentType = Annotated[str, AfterValidator(_content_type)]
WebUrl = Annotated[str, AfterValidator(web_url)]
WebOrigin = Annotated[str, AfterValidator(_web_origin)]
TitleUrl = Annotated[str, AfterValidator(_title_url)]
ProxyUrl = Annotated[str, AfterValidator(_proxy)]
PublicUrl = Annotated[str, AfterValidator(_public_url)]
MailAddress = Annotated[str, AfterValidator(_mail_address)]
ClockTime = Annotated[str, AfterValidator(_clock_time)]
SearchPattern = Annotated[str, AfterValidator(_search_pattern)]
SiteName = Annotated[str, AfterValidator(_site_name)]
PolicyText = Annotated[str, AfterValidator(_policy)]
PartText = Annotated[str, AfterValidator(_part)]
AddressText = Annotated[str, AfterValidator(_address)]
ListenText = Annotated[str, AfterValidator(_listen)]
