"""Sends one mail to an SMTP server (RFC 5321), with STARTTLS or TLS and a login.

The server is named by the operator, so the address fence does not apply. Whatever it answers, and
however slowly, the result is a value: replies have a limit of size, the whole exchange one of time.
"""

from __future__ import annotations

import base64
import contextlib
import os
import ssl
from dataclasses import dataclass, field
from typing import Final, Literal

import trio
from pydantic import SecretStr

from crawld.net.network import Network
from crawld.net.resolver import ResolutionError, Resolver
from crawld.net.secret_echo import hide_secrets
from crawld.net.tls import client_context, explain_tls, tls_cause

SMTP_TOTAL_S: Final = 60.0
"""Time for the whole exchange; an ordinary one takes less than a second."""

MAX_REPLY_BYTES: Final = 16_384
MAX_TROUBLE_CHARACTERS: Final = 300

_READ_BYTES: Final = 4_096
_Security = Literal["starttls", "tls", "none"]


class _SmtpError(Exception):
    """The exchange failed; the text says why, for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """A server and how to speak to it.

    Attributes:
        host: name or address.
        port: its port.
        security: `starttls`, `tls` from the start, or `none`.
        user: name to log in with; None: no login.
        password: the password of the user.
    """

    host: str
    port: int
    security: _Security
    user: str | None = None
    password: SecretStr = field(default=SecretStr(""))


@dataclass(frozen=True, slots=True)
class MailResult:
    """What became of a mail.

    Attributes:
        trouble: why nobody gets it, or who does not; empty: all is well.
        sent: whether the server took it for at least one address.
    """

    trouble: str
    sent: bool


class Mailer:
    """Sends mails; holds nothing between them.

    Args:
        resolver: resolves the name of the server.
        network: connects to its address.
        ssl_context: None trusts the system's certificate authorities.
    """

    def __init__(
        self, *, resolver: Resolver, network: Network, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._resolver = resolver
        self._network = network
        self._ssl_context = ssl_context

    async def send(
        self, server: MailServer, sender: str, recipients: tuple[str, ...], content: bytes
    ) -> MailResult:
        """Send a mail; no fault of the server or the network raises.

        Args:
            sender: address for the envelope.
            recipients: addresses for the envelope, at least one.
            content: the message in ASCII, its lines at most 998 bytes and ended by CR LF.
        """
        trouble = f"not complete after {SMTP_TOTAL_S:g} s"
        with trio.move_on_after(SMTP_TOTAL_S):
            try:
                refused = await self._exchange(server, sender, recipients, content)
            except _SmtpError as error:
                trouble = str(error)
            except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
                trouble = _reason(error)
            else:
                return MailResult("; ".join(refused)[:MAX_TROUBLE_CHARACTERS], sent=True)
        return MailResult(_without_login(trouble, server)[:MAX_TROUBLE_CHARACTERS], sent=False)

    async def _exchange(
        self, server: MailServer, sender: str, recipients: tuple[str, ...], content: bytes
    ) -> list[str]:
        """Send a mail and return the addresses that were refused, with the reasons."""
        session = _Session(await self._connect(server))
        try:
            if server.security == "tls":
                await session.encrypt(self._tls(), server.host)
            await session.expect(220)
            name = sender.rpartition("@")[2]
            offers = await session.greet(name)
            if server.security == "starttls":
                if "STARTTLS" not in offers:
                    raise _SmtpError("the server offers no STARTTLS; see security in [mail]")
                await session.command("STARTTLS", 220)
                await session.encrypt(self._tls(), server.host)
                offers = await session.greet(name)
            if server.user is not None:
                await session.log_in(server, offers.get("AUTH", ""))
            return await session.send(sender, recipients, content)
        finally:
            await trio.aclose_forcefully(session.stream)

    async def _connect(self, server: MailServer) -> trio.abc.Stream:
        try:
            addresses = await self._resolver.resolve(server.host.strip("[]"))
        except ResolutionError as error:
            raise _SmtpError(f"{server.host}: {error.detail}") from error
        fault: OSError | None = None
        for address in addresses[:3]:
            try:
                return (await self._network.connect(address, server.port)).stream
            except OSError as error:
                fault = error
        raise _SmtpError(f"{server.host} port {server.port}: {_reason(fault)}")

    def _tls(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = client_context()
        return self._ssl_context


class _Session:
    """One connection: commands and their replies."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self._received = bytearray()
        self._left_bytes = MAX_REPLY_BYTES

    async def encrypt(self, context: ssl.SSLContext, host: str) -> None:
        if self._received:
            # Somebody in between could have sent them before the encryption began.
            raise _SmtpError("the server sent more than its reply to STARTTLS")
        name = host.strip("[]")
        tls = trio.SSLStream(self.stream, context, server_hostname=name, https_compatible=True)
        self.stream = tls
        try:
            await tls.do_handshake()
        except trio.BrokenResourceError as error:
            cause = tls_cause(error)
            raise _SmtpError(
                f"TLS: {_reason(error) if cause is None else explain_tls(cause)}"
            ) from error

    async def greet(self, name: str) -> dict[str, str]:
        """Introduce ourselves and return what the server offers, parameters by name."""
        lines = await self.command(f"EHLO {name}", 250)
        offers = (line.replace("=", " ", 1).partition(" ") for line in lines[1:])
        return {offer.upper(): more for offer, _, more in offers}

    async def log_in(self, server: MailServer, methods: str) -> None:
        plain, user, password = _login_texts(server)
        offered = methods.upper().split()
        if "PLAIN" in offered:
            await self.command(f"AUTH PLAIN {plain}", 235, shown="the login")
        elif "LOGIN" in offered:
            await self.command("AUTH LOGIN", 334)
            await self.command(user, 334, shown="the login")
            await self.command(password, 235, shown="the login")
        else:
            raise _SmtpError("the server offers no login by AUTH PLAIN or LOGIN")

    async def send(self, sender: str, recipients: tuple[str, ...], content: bytes) -> list[str]:
        await self.command(f"MAIL FROM:<{sender}>", 250)
        refused = []
        for recipient in recipients:
            try:
                await self.command(f"RCPT TO:<{recipient}>", 250, 251)
            except _SmtpError as error:
                refused.append(str(error))
        if len(refused) == len(recipients):
            raise _SmtpError("; ".join(refused))
        await self.command("DATA", 354)
        # A line of only a dot ends the mail, so lines that begin with one get another.
        lines = b"\r\n" + content.removesuffix(b"\r\n") + b"\r\n"
        await self.stream.send_all(lines.replace(b"\r\n.", b"\r\n..")[2:] + b".\r\n")
        await self.expect(250, shown="the mail")
        with trio.move_on_after(1.0):
            # The mail is sent: what the server says to a farewell does not matter.
            with contextlib.suppress(_SmtpError, OSError, trio.BrokenResourceError):
                await self.command("QUIT", 221)
        return refused

    async def command(self, line: str, *wanted: int, shown: str = "") -> list[str]:
        await self.stream.send_all(f"{line}\r\n".encode("ascii"))
        return await self.expect(*wanted, shown=shown or line)

    async def expect(self, *wanted: int, shown: str = "the connection") -> list[str]:
        """Return the lines of the next reply, without their codes."""
        lines = []
        self._left_bytes = MAX_REPLY_BYTES
        while True:
            line = (await self._line()).decode("ascii", "replace")
            lines.append(line[4:].strip())
            if line[3:4] != "-":
                break
        if line[:3] not in map(str, wanted):
            raise _SmtpError(f"{shown} was refused: {line[:3]} {' '.join(lines)}")
        return lines

    async def _line(self) -> bytes:
        while (end := self._received.find(b"\n")) < 0:
            data = await self.stream.receive_some(_READ_BYTES)
            if not data:
                raise _SmtpError("the server closed the connection")
            self._received += data
            self._left_bytes -= len(data)
            if self._left_bytes < 0:
                raise _SmtpError(f"a reply is longer than {MAX_REPLY_BYTES} bytes")
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line


def _login_texts(server: MailServer) -> tuple[str, str, str]:
    """Return what a login sends: user and password at once, the user, the password, in base64."""
    if server.user is None:
        return "", "", ""
    user, password = server.user.encode(), server.password.get_secret_value().encode()
    plain = b"\0" + user + b"\0" + password
    return _base64(plain), _base64(user), _base64(password)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _without_login(text: str, server: MailServer) -> str:
    """Return a text without the password, which a server may repeat."""
    if not server.password.get_secret_value():
        return text
    plain, _, password = _login_texts(server)
    secrets = [server.password, *(SecretStr(each) for each in (plain, password) if each)]
    return hide_secrets(text, secrets)


def _reason(error: BaseException | None) -> str:
    cause = error.__cause__ if error is not None and error.__cause__ is not None else error
    text = os.strerror(cause.errno) if isinstance(cause, OSError) and cause.errno else None
    return (text or str(error) or "connection lost").lower()
