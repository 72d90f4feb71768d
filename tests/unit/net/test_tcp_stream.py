"""The stream of an outbound connection, over real sockets."""

import socket
from contextlib import contextmanager

import pytest
import trio
import trio.testing

from crawld.net.tcp_stream import TcpStream


@contextmanager
def connected():
    """Yield a stream and the socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ours = socket.create_connection(listening.getsockname())
        theirs, _ = listening.accept()
    with ours, theirs:
        yield TcpStream(ours), theirs


async def test_bytes_pass_both_ways_and_then_the_end():
    with connected() as (stream, peer):
        await stream.send_all(b"question")
        assert peer.recv(100) == b"question"
        assert not stream.is_readable()
        peer.sendall(b"answer")
        assert stream.is_readable()
        assert await stream.receive_some(3) == b"ans"
        assert await stream.receive_some() == b"wer"
        peer.close()
        assert stream.is_readable()
        assert await stream.receive_some() == b""
        await stream.aclose()


async def test_more_than_the_socket_takes_is_sent_as_the_peer_reads(nursery):
    sent = bytes(range(256)) * 40_000
    with connected() as (stream, peer):
        nursery.start_soon(stream.send_all, sent)
        reader = trio.SocketStream(trio.socket.from_stdlib_socket(peer))
        received = bytearray()
        while len(received) < len(sent):
            received += await reader.receive_some()
        assert received == sent


async def test_a_lost_connection_is_told_with_its_cause():
    with connected() as (stream, peer):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        peer.close()  # a reset
        with pytest.raises(trio.BrokenResourceError) as read:
            await stream.receive_some()
        assert isinstance(read.value.__cause__, ConnectionResetError)
        with pytest.raises(trio.BrokenResourceError) as written:
            await stream.send_all(b"question")
        assert isinstance(written.value.__cause__, BrokenPipeError)


async def test_a_stream_that_is_closed_ends_who_waits_for_it(nursery):
    with connected() as (stream, _):
        ended = trio.Event()

        async def wait():
            with pytest.raises(trio.ClosedResourceError):
                await stream.receive_some()
            ended.set()

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await stream.aclose()
        await ended.wait()
        for call in (stream.receive_some, lambda: stream.send_all(b"x")):
            with pytest.raises(trio.ClosedResourceError):
                await call()
        with pytest.raises(trio.ClosedResourceError):
            await stream.wait_send_all_might_not_block()


async def test_nothing_is_sent_in_a_scope_that_is_cancelled():
    with connected() as (stream, peer):
        peer.setblocking(False)
        with trio.CancelScope() as scope:
            scope.cancel()
            await stream.send_all(b"question")
        assert scope.cancelled_caught
        with pytest.raises(BlockingIOError):
            peer.recv(1)
