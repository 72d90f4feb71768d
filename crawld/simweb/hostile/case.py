"""Hostile cases as values: what a server sends, and which outcomes of its page are right."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import trio

from crawld.simweb.fault import Fault
from crawld.simweb.message import HTML, SimRequest, SimResponse, Step, build_response

STORED = frozenset({"changed", "unchanged", "not_modified"})
"""The page is mirrored."""


def failed(*failures: str) -> frozenset[str]:
    """Return the outcomes of visits that failed for one of these reasons."""
    return frozenset(f"failed:{failure}" for failure in failures)


TOO_LARGE = failed("too_large")
TIMEOUT = failed("timeout")
DECODING = failed("decoding")
PROTOCOL = failed("protocol")
TRUNCATED = failed("truncated")
BROKEN = failed("protocol", "truncated", "decoding", "too_large", "timeout", "connect")
"""The response is unusable: the visit fails, for whichever of its faults is seen first."""

NO_ROBOTS = frozenset({"robots", "blocked:robots", "failed:robots"})
"""The page is not asked for, because of the host's robots.txt."""


class Transport(StrEnum):
    """What a case's server speaks, and so on which port of the world it is.

    `HTTP` is answered message by message. `RAW` and `TLS` connections belong to the case from
    their first byte on; its URL has the scheme http and https respectively.
    """

    HTTP = "http"
    RAW = "raw"
    TLS = "tls"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a case is served.

    Attributes:
        host: its host name.
        port: its port.
        vault: URL of a server that must never be asked: no site allows its address.
        context: makes the TLS context of a certificate for some names.
    """

    host: str
    port: int
    vault: str
    context: Callable[..., ssl.SSLContext]

    @property
    def origin(self) -> str:
        """Return the origin of the case over plain HTTP."""
        return f"http://{self.host}:{self.port}"


Connection = Callable[[trio.abc.HalfCloseableStream], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class NameAnswer:
    """What a name server answers.

    Attributes:
        addresses: none: the name does not exist, unless there is an `error`.
        ttl_s: how long they may be kept, as it says.
        delay_s: until it answers; `inf`: never.
        error: the kind of failure, as of `crawld.net.resolver.ResolutionError`.
    """

    addresses: tuple[str, ...] = ()
    ttl_s: float = 300.0
    delay_s: float = 0.0
    error: Literal["nxdomain", "temporary", "timeout"] | None = None


NameServer = Callable[[str, int, str], NameAnswer]
"""Answers for a host name of a case that was asked for so often before; the third argument is the
address of the case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileCase:
    """One hostile host.

    Attributes:
        name: unique; the host name is made of it.
        family: what is attacked.
        respond: returns the handler of its requests; called once, before the world is ready, so
            that large bodies are made ahead of time.
        connect: the same for connections, of the transports `RAW` and `TLS`.
        outcomes: the acceptable outcomes of every visit to its page, as `changed`, `failed:timeout`
            or, if the page is never asked for, `robots`.
        site: more lines of its `[[site]]`; `{origin}` is replaced.
        owns: whether the handler answers every target, robots.txt included; else only `path`.
        path: target of its page.
        wait: longest time to its outcome, as a multiple of the time of one request.
        quick: whether it is among the few that stand for their family.
        resolve: answers for its host name and those below it; None: its address. Such a case needs
            the simulated web, where hosts have public addresses.
        dial_s: how long a connection takes to open; `inf`: for ever. Also for the simulated web.
        simulated: whether it needs the simulated web for another reason.
    """

    name: str
    family: str
    respond: Callable[[Place], Fault] | None = None
    connect: Callable[[Place], Connection] | None = None
    outcomes: frozenset[str] = STORED
    transport: Transport = Transport.HTTP
    site: str = ""
    owns: bool = False
    path: str = "/"
    wait: float = 2.0
    quick: bool = False
    resolve: NameServer | None = None
    dial_s: float = 0.0
    simulated: bool = False

    @property
    def needs_simulation(self) -> bool:
        """Whether it has no place on the real sockets of one machine."""
        return self.simulated or self.resolve is not None or self.dial_s > 0.0

    @property
    def host(self) -> str:
        """Return its host name."""
        return f"{self.name}.hostile.test"

    @property
    def scheme(self) -> str:
        """Return the scheme of its URL."""
        return "https" if self.transport is Transport.TLS else "http"

    def site_table(self, origin: str, **keys: object) -> str:
        """Return its `[[site]]`, with keys that its own lines may replace.

        Args:
            origin: scheme, host and port of its page.
            keys: values of TOML by key.
        """
        more = self.site.replace("{origin}", origin).replace("{host}", self.host)
        lines = [f'name = "{self.name}"', f'seeds = ["{origin}{self.path}"]', more]
        lines += [f"{key} = {value}" for key, value in keys.items() if f"{key} =" not in more]
        return "[[site]]\n" + "\n".join(filter(None, lines))


def page(
    name: str,
    body: Callable[[], bytes | str],
    *,
    outcomes: frozenset[str] = STORED,
    content_type: str = HTML,
    extra: str = "",
    status: int = 200,
    site: str = "",
    wait: float = 2.0,
    quick: bool = False,
) -> HostileCase:
    """Return a case (without its family) that sends one page, the same at each visit."""

    def respond(place: Place) -> Fault:
        made = body()
        content = made.encode() if isinstance(made, str) else made
        return lambda request, _: build_response(
            request, status, content, content_type=content_type, extra=extra
        )

    return HostileCase(
        name=name,
        family="",
        respond=respond,
        outcomes=outcomes,
        site=site,
        wait=wait,
        quick=quick,
    )


def wire(
    name: str,
    *steps: Step,
    outcomes: frozenset[str],
    site: str = "",
    close: bool = True,
    wait: float = 2.0,
    quick: bool = False,
) -> HostileCase:
    """Return a case that answers each request for its page with these bytes, times and ends."""
    return stream(
        name, lambda: steps, outcomes=outcomes, site=site, close=close, wait=wait, quick=quick
    )


def stream(
    name: str,
    steps: Callable[[], Iterable[Step]],
    *,
    outcomes: frozenset[str],
    site: str = "",
    close: bool = True,
    wait: float = 2.0,
    quick: bool = False,
) -> HostileCase:
    """Return a case that answers each request for its page with the steps of a new iterator."""
    return HostileCase(
        name=name,
        family="",
        respond=lambda _: lambda request, handler: SimResponse(200, steps(), close=close),
        outcomes=outcomes,
        site=site,
        wait=wait,
        quick=quick,
    )


def html(body: bytes | str, head: bytes | str = "") -> bytes:
    """Return a page with a title, a sentence and a link, and more content in its head and body."""
    before = _bytes(head)
    return (
        b"<!DOCTYPE html><html><head><title>A hostile page</title>" + before + b"</head><body>"
        b"<p>This sentence is to be mirrored.</p><a href='/leaf'>a leaf</a>"
        + _bytes(body)
        + b"</body></html>"
    )


def leaf(request: SimRequest) -> SimResponse:
    """Return a small page."""
    return build_response(request, 200, html(f"<p>{len(request.target)} characters"))


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text
