"""A real mail server (aiosmtpd) in a process of its own, on a free port of loopback.

Mails are files in its folder, in order of arrival. It takes no mail to `nobody@…` and none
from `full@…`.

    python -m tests.peer.mail_receiver '{"folder": "/tmp/a", "starttls": null, ...}'
"""

import asyncio
import json
import ssl
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes, policy
from pathlib import Path

PASSWORD = "correct-horse-battery"


@dataclass
class MailReceiver:
    """A running server."""

    folder: Path
    port: int

    def contents(self):
        """Return the mails as they came, bytes."""
        return [path.read_bytes() for path in sorted(self.folder.glob("*.eml"))]

    def mails(self):
        """Return the mails, parsed."""
        return [message_from_bytes(each, policy=policy.default) for each in self.contents()]

    def envelopes(self):
        """Return (sender, addresses) of each mail."""
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("*.json"))]

    def logins(self):
        """Return (mechanism, user, password) of each login."""
        path = self.folder / "logins"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@contextmanager
def mail_receiver(folder, *, starttls=None, tls=None, login=False, **options):
    """Run a server.

    Args:
        starttls: file of certificate and key that it offers; `tls`: the same from the start.
        login: whether it demands one, with `PASSWORD`.
    """
    given = {"starttls": starttls, "tls": tls, "login": login, "options": options}
    command = [sys.executable, "-m", __name__, json.dumps({"folder": str(folder), **given})]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield MailReceiver(Path(folder), int(process.stdout.readline()))
        finally:
            process.kill()


def write_certificate(authority, path, *names):
    """Write a certificate with its key for these names, and return the path as text."""
    issued = authority.issue_cert(*names)
    chain = [issued.private_key_pem, *issued.cert_chain_pems]
    path.write_bytes(b"".join(each.bytes() for each in chain))
    return str(path)


class _Handler:
    def __init__(self, folder):
        self._folder = folder
        self._count = 0

    async def handle_RCPT(self, _server, _session, envelope, address, _options):
        if address.startswith("nobody@"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, _session, envelope):
        if envelope.mail_from.startswith("full@"):
            return "452 disk full"
        self._count += 1
        path = self._folder / f"{self._count:06}.json"
        path.write_text(json.dumps([envelope.mail_from, envelope.rcpt_tos]))
        path.with_suffix(".eml").write_bytes(envelope.original_content)
        return "250 OK"

    def log_in(self, _server, _session, _envelope, mechanism, data):
        from aiosmtpd.smtp import AuthResult

        with (self._folder / "logins").open("a") as file:
            found = [mechanism, data.login.decode(), data.password.decode()]
            file.write(json.dumps(found) + "\n")
        return AuthResult(success=data.password == PASSWORD.encode(), handled=False)


def _context(path):
    if path is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


async def _serve(given):
    from aiosmtpd.smtp import SMTP

    handler = _Handler(Path(given["folder"]))
    options = given["options"] | {"tls_context": _context(given["starttls"])}
    if given["starttls"]:
        options["require_starttls"] = True
    if given["login"]:
        options |= {"auth_required": True, "authenticator": handler.log_in}
        options["auth_require_tls"] = bool(given["starttls"])
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(handler, hostname="mail.test", loop=loop, **options),
        "127.0.0.1",
        0,
        ssl=_context(given["tls"]),
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(sys.argv[1])))
