"""Mails to a real server, and to servers that refuse, hang, flood and cheat."""

import pytest
import trio
from pydantic import SecretStr

from crawld.net import smtp
from crawld.net.network import SystemNetwork
from crawld.net.resolver import FixedResolver
from crawld.net.smtp import Mailer, MailServer
from tests.peer.mail_receiver import PASSWORD, mail_receiver, write_certificate
from tests.unit.net.scripted_server import HOSTS

SENDER = "crawld@a.test"
TO = ("you@b.test", "me@b.test")
MAIL = b"Subject: news\r\n\r\none\r\n.\r\n..two\r\n.three\r\n"


@pytest.fixture
def mailer(client_tls):
    return Mailer(resolver=FixedResolver(HOSTS), network=SystemNetwork(), ssl_context=client_tls)


@pytest.fixture
def certificate(authority, tmp_path):
    return write_certificate(authority, tmp_path / "server.pem", "site.test")


def server(port, **fields):
    given = {"host": "site.test", "port": port, "security": "none"}
    return MailServer(**{**given, **fields})


def with_login(port, password=PASSWORD, **fields):
    return server(port, user="crawld", password=SecretStr(password), **fields)


async def test_mails_arrive_as_they_were_sent(mailer, tmp_path):
    with mail_receiver(tmp_path) as receiver:
        result = await mailer.send(server(receiver.port), SENDER, TO, MAIL)
        assert (result.trouble, result.sent) == ("", True)
        to = ("nobody@b.test", "me@b.test")
        result = await mailer.send(server(receiver.port), SENDER, to, MAIL)
        assert result.sent
        assert result.trouble == "RCPT TO:<nobody@b.test> was refused: 550 no such user"
        result = await mailer.send(server(receiver.port), SENDER, to[:1], MAIL)
        assert not result.sent
        result = await mailer.send(server(receiver.port), "full@b.test", TO, MAIL)
        assert (result.trouble, result.sent) == ("the mail was refused: 452 disk full", False)
    assert receiver.contents() == [MAIL, MAIL]
    assert receiver.envelopes() == [[SENDER, list(TO)], [SENDER, ["me@b.test"]]]


async def test_starttls_and_login(mailer, certificate, tmp_path):
    with mail_receiver(tmp_path, starttls=certificate, login=True) as receiver:
        given = with_login(receiver.port, security="starttls")
        result = await mailer.send(given, SENDER, TO, MAIL)
        assert (result.trouble, result.sent) == ("", True)
        assert receiver.logins() == [["PLAIN", "crawld", PASSWORD]]
        given = with_login(receiver.port, "wrong-password", security="starttls")
        result = await mailer.send(given, SENDER, TO, MAIL)
        assert "the login was refused: 535" in result.trouble
        given = server(receiver.port, security="starttls", host="other.test")
        result = await mailer.send(given, SENDER, TO, MAIL)
        assert "mismatch" in result.trouble
    assert len(receiver.contents()) == 1


async def test_tls_from_the_start(mailer, certificate, tmp_path):
    with mail_receiver(tmp_path, tls=certificate) as receiver:
        result = await mailer.send(server(receiver.port, security="tls"), SENDER, TO, MAIL)
        assert (result.trouble, result.sent) == ("", True)


async def test_a_server_without_starttls_gets_no_password(mailer, tmp_path):
    with mail_receiver(tmp_path, login=True) as receiver:
        given = with_login(receiver.port, security="starttls")
        result = await mailer.send(given, SENDER, TO, MAIL)
        assert "offers no STARTTLS" in result.trouble
        assert receiver.logins() == []


async def test_login_where_the_server_offers_no_plain(mailer, tmp_path):
    with mail_receiver(tmp_path, login=True, auth_exclude_mechanism=["PLAIN"]) as receiver:
        assert (await mailer.send(with_login(receiver.port), SENDER, TO, MAIL)).sent
        assert receiver.logins() == [["LOGIN", "crawld", PASSWORD]]


def talking(*replies, flood=b"", holds=False):
    """Return a handler that sends a reply at once and one for each command."""

    async def handle(peer):
        for number, reply in enumerate(replies):
            if number:
                peer.site.requests.append(await peer.stream.receive_some(65536))
            await peer.send(reply)
        while flood:
            await peer.send(flood)
        if holds:
            await trio.sleep_forever()

    return handle


@pytest.mark.parametrize(
    ("handler", "part"),
    [
        (talking(b"554 go away\r\n"), "the connection was refused: 554 go away"),
        (talking(b"HTTP/1.1 400 Bad\r\n"), "was refused: HTT"),
        (talking(b"220 hi\r\n", b"500 what\r\n"), "EHLO a.test was refused"),
        (talking(b""), "closed the connection"),
        (talking(b"220 hi\r\n", b"250-a\r\n"), "closed the connection"),
        (talking(b"220 hi\r\n", b"", flood=b"250-a\r\n" * 100), "longer than 16384 bytes"),
        (talking(b"", flood=b"x" * 500), "longer than 16384 bytes"),
        (talking(b"220 \xff\x00\x1b[2J\r\n", b"550 \x1b[2J\r\n"), "refused: 550"),
    ],
)
async def test_bad_servers(serve, mailer, handler, part):
    site = await serve(handler)
    result = await mailer.send(server(site.port), SENDER, TO, MAIL)
    assert not result.sent
    assert part in result.trouble
    assert len(result.trouble) <= smtp.MAX_TROUBLE_CHARACTERS


async def test_a_server_that_hangs_ends_at_the_deadline(serve, mailer, autojump_clock):
    site = await serve(talking(holds=True))
    result = await mailer.send(server(site.port), SENDER, TO, MAIL)
    assert result.trouble == "not complete after 60 s"


async def test_what_came_before_the_encryption_is_refused(serve, mailer):
    offers = b"250-hi\r\n250 STARTTLS\r\n"
    site = await serve(talking(b"220 hi\r\n", offers, b"220 go\r\n250 injected\r\n"))
    result = await mailer.send(server(site.port, security="starttls"), SENDER, TO, MAIL)
    assert "more than its reply" in result.trouble


async def test_a_password_that_the_server_repeats_is_hidden(serve, mailer):
    async def echo(peer):
        await peer.send(b"220 hi\r\n")
        await peer.stream.receive_some(65536)
        await peer.send(b"250-hi\r\n250 AUTH PLAIN\r\n")
        line = await peer.stream.receive_some(65536)
        await peer.send(b"535 " + line.strip() + b" " + PASSWORD.encode() + b"\r\n")

    site = await serve(echo)
    given = with_login(site.port)
    assert PASSWORD not in repr(given)
    result = await mailer.send(given, SENDER, TO, MAIL)
    assert result.trouble == "the login was refused: 535 AUTH PLAIN *** ***"


async def test_no_server_listens(mailer):
    listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    result = await mailer.send(server(port), SENDER, TO, MAIL)
    assert result.trouble == f"site.test port {port}: connection refused"
    result = await mailer.send(server(port, host="absent.test"), SENDER, TO, MAIL)
    assert "absent.test" in result.trouble


async def test_a_server_that_speaks_no_tls(serve, mailer):
    site = await serve(talking(b"220 hi\r\n" * 10))
    result = await mailer.send(server(site.port, security="tls"), SENDER, TO, MAIL)
    assert result.trouble.startswith("TLS: ")
