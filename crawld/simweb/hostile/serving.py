"""What serves hostile cases, on sockets as well as in memory: their sites and certificates."""

from __future__ import annotations

import datetime
import ssl
from dataclasses import dataclass, field

import trio
import trustme

from crawld.simweb.fault import Fault
from crawld.simweb.hostile.case import HostileCase, leaf
from crawld.simweb.message import SimRequest, SimResponse, build_response

BROKEN_CONNECTION = (
    trio.BrokenResourceError,
    trio.ClosedResourceError,
    OSError,
    ssl.SSLError,
)
"""What a connection raises to a server whose client has gone."""


@dataclass
class Authority:
    """Certificates of the world.

    Attributes:
        trusted: the authority that clients are told to trust.
    """

    trusted: trustme.CA = field(default_factory=trustme.CA)
    _unknown: trustme.CA = field(default_factory=trustme.CA)

    def context(
        self, *names: str, trusted: bool = True, expired: bool = False, http2: bool = False
    ) -> ssl.SSLContext:
        """Return the TLS context of a server with a certificate for some names."""
        issuer = self.trusted if trusted else self._unknown
        now = datetime.datetime.now(datetime.UTC)
        until = now - datetime.timedelta(days=1) if expired else now + datetime.timedelta(days=30)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["h2"] if http2 else ["http/1.1"])
        issuer.issue_cert(*names, not_after=until).configure_cert(context)
        return context


@dataclass(frozen=True, slots=True)
class CaseSite:
    """The site of one case with the transport HTTP."""

    hosts: tuple[str, ...]
    case: HostileCase
    respond: Fault

    def handle(self, request: SimRequest) -> SimResponse:
        """Return the response to a request."""
        if self.case.owns or request.path == self.case.path or not request.target:
            return self.respond(request, leaf)
        # Other targets do not exist: else the page would look like any of them, a soft 404.
        return leaf(request) if request.path == "/leaf" else build_response(request, 404)


@dataclass(frozen=True, slots=True)
class LeafSite:
    """A site that answers every target with a small page."""

    hosts: tuple[str, ...]

    def handle(self, request: SimRequest) -> SimResponse:
        """Return the response to a request."""
        return leaf(request)
