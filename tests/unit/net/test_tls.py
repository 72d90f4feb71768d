"""TLS and HTTP/2 against real certificates."""

import datetime
import gzip

import hypercorn.config
import hypercorn.trio
import pytest
import trio

from crawld.core.page import Failure
from crawld.net.exchange import FetchFailure, FetchLimits, FetchRequest, FetchResponse
from crawld.net.tls import MAX_NAMES, certificate_names, client_context
from tests.unit.net.scripted_server import CUT, OK, answering, anywhere

SHORT = FetchLimits(connect_s=0.5)


def ask(site, host="site.test", **fields):
    return FetchRequest(url=site.url("/", host, "https"), permits_private=anywhere, **fields)


async def test_sni_and_certificate_check_use_the_url_host(serve, fetcher, server_tls):
    tls = server_tls("site.test")
    names = []
    tls.sni_callback = lambda _socket, name, _context: names.append(name)
    site = await serve(answering(OK, OK), tls)
    for _ in range(2):
        got = await fetcher.fetch(ask(site))
        assert isinstance(got, FetchResponse), got
    assert (got.body, got.address, site.connections) == (b"hello", "127.0.0.1", 1)
    assert names == ["site.test"]
    got = await fetcher.fetch(ask(site, "wrong.test"))
    assert (got.failure, got.sent_at) == (Failure.TLS, None)
    assert "wrong.test" in got.detail


async def test_responses_carry_the_certificate_names(serve, fetcher, server_tls):
    names = ("site.test", "Second.test", "*.wild.test")
    site = await serve(answering(OK, OK), server_tls(*names))
    for _ in range(2):
        got = await fetcher.fetch(ask(site))
        assert got.certificate == ("second.test", "site.test")
    plain = await serve(answering(OK))
    got = await fetcher.fetch(FetchRequest(url=plain.url("/"), permits_private=anywhere))
    assert got.certificate == ()


def test_a_certificate_with_too_many_names_is_ignored():
    names = [("DNS", f"n{number}.test") for number in range(MAX_NAMES + 1)]
    assert len(certificate_names({"subjectAltName": names[:-1]})) == MAX_NAMES
    assert certificate_names({"subjectAltName": names}) == ()
    assert certificate_names({"subjectAltName": [("IP Address", "192.0.2.1")]}) == ()
    assert certificate_names(None) == ()


async def test_an_expired_certificate(serve, fetcher, server_tls):
    past = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
    site = await serve(answering(OK), server_tls("site.test", not_after=past))
    got = await fetcher.fetch(ask(site))
    assert (got.failure, got.address) == (Failure.TLS, "127.0.0.1")
    assert "expired" in got.detail


async def test_an_unknown_authority(serve, make_fetcher, server_tls):
    site = await serve(answering(OK), server_tls("site.test"))
    fetcher = make_fetcher(ssl_context=None)
    got = await fetcher.fetch(ask(site))
    assert got.failure is Failure.TLS
    assert "certificate" in got.detail


async def test_a_server_without_tls(serve, fetcher):
    async def handle(peer):
        await peer.stream.receive_some(100)
        await peer.send(OK)

    site = await serve(handle)
    got = await fetcher.fetch(ask(site))
    assert got.failure is Failure.TLS
    assert got.detail


async def test_a_handshake_that_is_cut_off_or_not_answered(serve, fetcher):
    async def cut(peer):
        await peer.stream.receive_some(100)

    async def silent(peer):
        await trio.sleep_forever()

    got = await fetcher.fetch(ask(await serve(cut)))
    assert got.failure is Failure.TLS
    got = await fetcher.fetch(ask(await serve(silent), limits=SHORT))
    assert (got.failure, got.sent_at) == (Failure.TIMEOUT, None)
    assert "no connection" in got.detail


async def test_a_body_cut_off_under_tls(serve, fetcher, server_tls):
    site = await serve(answering(CUT), server_tls("site.test"))
    assert (await fetcher.fetch(ask(site))).failure is Failure.TRUNCATED


CLOSED = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


def ending(answer, *, goodbye):
    """Return a handler that answers and ends the connection, with TLS's close message or not."""

    async def handle(peer):
        await peer.request()
        await peer.send(answer)
        if goodbye:
            await peer.stream.unwrap()
        else:
            await peer.stream.transport_stream.send_eof()
        await trio.sleep_forever()

    return handle


@pytest.mark.parametrize(
    ("answer", "goodbye", "body"),
    [
        (CLOSED + b"\r\nhello", True, b"hello"),
        (CLOSED + b"\r\nhello", False, None),
        (CLOSED + b"\r\n", False, None),
        (b"HTTP/1.0 200 OK\r\n\r\nhello", False, None),
        # What shows its end needs no close message.
        (CLOSED + b"Content-Length: 5\r\n\r\nhello", False, b"hello"),
        (CLOSED + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", False, b"hello"),
        (CLOSED + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello"), False, b"hello"),
        (CLOSED + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello")[:-1], False, None),
        (CLOSED + b"Content-Encoding: utf-8\r\n\r\nhello", False, None),
        (CLOSED + b"Content-Length: 9\r\n\r\nhello", True, None),
    ],
)
async def test_a_body_without_length_ends_with_the_close_message(
    serve, fetcher, server_tls, answer, goodbye, body
):
    site = await serve(ending(answer, goodbye=goodbye), server_tls("site.test"))
    got = await fetcher.fetch(ask(site))
    if body is None:
        assert isinstance(got, FetchFailure), got
        assert got.failure is Failure.TRUNCATED
    else:
        assert isinstance(got, FetchResponse), got
        assert got.body == body


async def asgi(scope, receive, send):
    """Send a megabyte for /big, the path itself for everything else."""
    if scope["type"] == "lifespan":
        for phase in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{phase}.complete"})
        return
    body = b"x" * 1_000_000 if scope["path"] == "/big" else scope["path"].encode()
    headers = [(b"x-version", scope["http_version"].encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
async def h2_origin(nursery, authority, tmp_path):
    certificate = authority.issue_cert("site.test")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    config = hypercorn.config.Config()
    config.bind = ["127.0.0.1:0"]
    config.keyfile = str(tmp_path / "key.pem")
    config.certfile = str(tmp_path / "cert.pem")
    stop = trio.Event()

    async def run(task_status=trio.TASK_STATUS_IGNORED):
        await hypercorn.trio.serve(
            asgi, config, shutdown_trigger=stop.wait, task_status=task_status
        )

    [bound] = await nursery.start(run)
    yield f"https://site.test:{bound.rpartition(':')[2]}"
    stop.set()


@pytest.mark.parametrize(("http2", "version"), [(True, "HTTP/2"), (False, "HTTP/1.1")])
async def test_http2_is_used_only_if_enabled(h2_origin, make_fetcher, http2, version):
    fetcher = make_fetcher(http2=http2)

    async def fetch(path, **fields):
        request = FetchRequest(url=h2_origin + path, permits_private=anywhere, **fields)
        return await fetcher.fetch(request)

    for path in ("/a", "/big", "/c?d"):
        got = await fetch(path)
        assert isinstance(got, FetchResponse), got
        assert got.http_version == version
        assert len(got.body) == (1_000_000 if path == "/big" else 2)
        assert got.header("x-version") == version.removeprefix("HTTP/")
    assert fetcher.statistics().reused == 2

    got = await fetch("/big", limits=FetchLimits(max_wire_bytes=100_000))
    assert isinstance(got, FetchFailure)
    assert got.failure is Failure.TOO_LARGE
    assert (await fetch("/z", keep_alive=False)).body == b"/z"
    assert fetcher.statistics().idle == 0


async def test_invalid_http2_frames(serve, server_tls, make_fetcher):
    async def handle(peer):
        await peer.stream.receive_some(65536)
        data_on_the_connection_itself = b"\x00\x00\x05" + b"\x00" * 6 + b"hello"
        await peer.send(data_on_the_connection_itself)
        await trio.sleep_forever()

    tls = server_tls("site.test")
    tls.set_alpn_protocols(["h2"])
    site = await serve(handle, tls)
    got = await make_fetcher(http2=True).fetch(ask(site))
    assert isinstance(got, FetchFailure)
    assert got.failure is Failure.PROTOCOL


def test_a_process_has_one_context():
    """Each costs 700 KB, and up to 55 ms that hold the event loop."""
    assert client_context() is client_context()
