"""Listening and reading request heads, for the small web servers of tests."""

import trio


async def listen(server, talk, task_status, host="127.0.0.1"):
    """Serve connections on a free port; sets `server.port` and reports the server as started."""
    listeners = await trio.open_tcp_listeners(0, host=host)
    server.port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, talk, listeners)
        task_status.started(server)


async def next_head(stream, received=b""):
    """Return the head of the next request as text, and the bytes received after it.

    None at the end of the connection. Requests have no body.
    """
    while b"\r\n\r\n" not in received:
        data = await stream.receive_some(65_536)
        if not data:
            return None
        received += data
    head, _, rest = received.partition(b"\r\n\r\n")
    return head.decode(), rest
