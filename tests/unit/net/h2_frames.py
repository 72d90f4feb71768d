"""Frames of HTTP/2 as bytes, right and wrong, and a server that sends them."""

import hpack
import trio

DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED = 1, 4, 8

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, payload=b"", *, flags=0, stream=1):
    """Return one frame."""
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


def block(*lines):
    """Return a header block that says exactly these lines, whatever is wrong with them."""
    return b"".join(b"\x00" + _string(name) + _string(value) for name, value in lines)


def _string(text):
    return hpack.hpack.encode_integer(len(text), 7) + text


def headers(*lines, flags=END_HEADERS, stream=1):
    """Return a HEADERS frame."""
    return frame(HEADERS, block(*lines), flags=flags, stream=stream)


OK_HEADERS = headers((b":status", b"200"))
HELLO = frame(DATA, b"hello", flags=END_STREAM)
SETTINGS_FRAME = frame(SETTINGS, stream=0)


def answering_h2(*frames, flood=b"", holds=True):
    """Return a handler that answers one request with these frames."""

    async def handle(peer):
        received = b""
        while len(received) < len(PREFACE) + 60:  # the request is in the second or third packet
            data = await peer.stream.receive_some(65536)
            if not data:
                return
            received += data
        peer.site.requests.append(received)
        await peer.send(SETTINGS_FRAME + b"".join(frames))
        while flood:
            await peer.send(flood)
        if holds:
            await trio.sleep_forever()

    return handle
