import socket

import pytest
import trio

from crawld.errors import OperatorError
from crawld.net.listener import listen_tcp, listen_unix


async def application(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def status_line(stream):
    async with stream:
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return (await stream.receive_some()).splitlines()[0]


async def test_tcp_listener_serves_on_a_free_port(nursery):
    listener = listen_tcp("localhost", 0)
    await nursery.start(listener.serve, application)
    port = int(listener.url.removesuffix("/").rpartition(":")[2])
    assert listener.url == f"http://127.0.0.1:{port}/"
    assert await status_line(await trio.open_tcp_stream("127.0.0.1", port)) == b"HTTP/1.1 204 "


async def test_url_of_a_wildcard_address_is_loopback(nursery):
    listener = listen_tcp("0.0.0.0", 0)
    await nursery.start(listener.serve, application)
    assert listener.url.startswith("http://127.0.0.1:")


def test_tcp_address_in_use_is_an_operator_error():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OperatorError, match=f"cannot listen on 127.0.0.1:{port}: "):
            listen_tcp("127.0.0.1", port)


async def test_unix_socket_is_private_and_deleted_at_the_end(tmp_path):
    path = tmp_path / "crawld.sock"
    async with trio.open_nursery() as nursery:
        await nursery.start(listen_unix(path, None).serve, application)
        assert path.stat().st_mode & 0o777 == 0o660
        assert await status_line(await trio.open_unix_socket(path)) == b"HTTP/1.1 204 "
        nursery.cancel_scope.cancel()
    assert not path.exists()


async def test_dead_unix_socket_is_replaced(tmp_path, nursery):
    path = tmp_path / "crawld.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    await nursery.start(listen_unix(path, None).serve, application)
    with pytest.raises(OperatorError, match="another daemon answers"):
        listen_unix(path, None)


@pytest.mark.parametrize("group", ["no_such_group", None])
def test_unix_socket_that_cannot_be_created_is_an_operator_error(tmp_path, group):
    folder = tmp_path if group else tmp_path / "missing"
    with pytest.raises(OperatorError, match="cannot create the control socket"):
        listen_unix(folder / "crawld.sock", group)
