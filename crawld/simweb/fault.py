"""Server faults as values: slow, broken, wrong or endless responses.

A fault takes the request and the site's normal handler and returns the response to send instead.
A site maps path prefixes to faults. `first_requests` and `sometimes` limit when a fault applies;
otherwise the site responds normally.

Rule: a fault never sleeps and never touches a socket; delays are steps of the response.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from itertools import count

from crawld.errors import OperatorError
from crawld.simweb.message import (
    AbnormalEnd,
    SimRequest,
    SimResponse,
    Step,
    build_error_response,
    build_response,
)
from crawld.simweb.stateless_random import uniform

Handler = Callable[[SimRequest], SimResponse]
Fault = Callable[[SimRequest, Handler], SimResponse]

_BLOCK_BYTES = 64 * 1024
_OPEN_ENDED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"


def slow(delay_s: float) -> Fault:
    """Send the normal response after `delay_s`."""

    def fault(request: SimRequest, handler: Handler) -> SimResponse:
        response = handler(request)
        return SimResponse(response.status, (delay_s, response.to_bytes()))

    return fault


def hang() -> Fault:
    """Accept the request and never respond."""
    return lambda request, handler: SimResponse(0, (AbnormalEnd.HANG,), close=True)


def hang_mid_body() -> Fault:
    """Send half of the body, then nothing, and keep the connection open."""
    return _cut(AbnormalEnd.HANG)


def close_mid_body() -> Fault:
    """Send half of the body, then close the connection."""
    return _cut(AbnormalEnd.CLOSE)


def half_close_mid_body() -> Fault:
    """Send half of the body, then end the server's direction, and keep the other one open."""
    return _cut(AbnormalEnd.HALF_CLOSE)


def close_unanswered(*, reset: bool = False) -> Fault:
    """Close (or reset) the connection without sending a byte."""
    end = AbnormalEnd.RESET if reset else AbnormalEnd.CLOSE
    return lambda request, handler: SimResponse(0, (end,), close=True)


def drip(chunk_bytes: int, every_s: float) -> Fault:
    """Send the normal response in small chunks, with a pause between two."""

    def steps(wire: bytes) -> Iterator[Step]:
        for start in range(0, len(wire), chunk_bytes):
            if start:
                yield every_s
            yield wire[start : start + chunk_bytes]

    def fault(request: SimRequest, handler: Handler) -> SimResponse:
        response = handler(request)
        return SimResponse(response.status, steps(response.to_bytes()))

    return fault


def wrong_length(by: int) -> Fault:
    """Declare `by` bytes more than are sent (then close), or fewer if negative."""

    def fault(request: SimRequest, handler: Handler) -> SimResponse:
        response = handler(request)
        head, _, body = response.to_bytes().partition(b"\r\n\r\n")
        true_length = b"Content-Length: %d" % len(body)
        lie = b"Content-Length: %d" % max(0, len(body) + by)
        return SimResponse(
            response.status, head.replace(true_length, lie) + b"\r\n\r\n" + body, close=True
        )

    return fault


def gzip_bomb(size_bytes: int) -> Fault:
    """Send a gzip body that unpacks to `size_bytes` of zeros; about a thousandth on the wire."""

    def steps() -> Iterator[Step]:
        yield _OPEN_ENDED + b"Content-Encoding: gzip\r\n\r\n"
        packing = zlib.compressobj(9, zlib.DEFLATED, 31)
        block = bytes(1 << 20)
        for start in range(0, size_bytes, len(block)):
            if packed := packing.compress(block[: size_bytes - start]):
                yield packed
        yield packing.flush()

    return lambda request, handler: SimResponse(200, steps(), close=True)


def corrupt_gzip() -> Fault:
    """Declare gzip and send invalid gzip data."""
    return lambda request, handler: build_response(
        request, 200, b"\x1f\x8b\x08\x00 this is no gzip", extra="Content-Encoding: gzip\r\n"
    )


def endless_body() -> Fault:
    """Send a body that never ends, as fast as the client reads."""

    def steps() -> Iterator[Step]:
        yield _OPEN_ENDED + b"\r\n<!DOCTYPE html><title>endless</title>"
        block = b"<p>and so on</p>\n" * (_BLOCK_BYTES // 17)
        while True:
            yield block

    return lambda request, handler: SimResponse(200, steps(), close=True)


def endless_header() -> Fault:
    """Send header lines that never end."""

    def steps() -> Iterator[Step]:
        yield b"HTTP/1.1 200 OK\r\n"
        for k in count():
            yield b"X-More-%d: %s\r\n" % (k, b"x" * 1000)

    return lambda request, handler: SimResponse(200, steps(), close=True)


def huge_header(size_bytes: int) -> Fault:
    """Send a header field of `size_bytes`, then the rest of the normal response."""

    def fault(request: SimRequest, handler: Handler) -> SimResponse:
        response = handler(request)
        first_line, mark, rest = response.to_bytes().partition(b"\r\n")
        huge = b"X-Huge: %s\r\n" % (b"x" * size_bytes)
        return SimResponse(response.status, first_line + mark + huge + rest)

    return fault


def invalid_header() -> Fault:
    """Send header lines that no HTTP parser may accept."""
    wire = (
        b"HTTP/1.1 200 OK\r\nno colon here\r\nBad Name\x00: \x01\r\n: empty\r\n"
        b"Content-Length: twelve\r\n\r\nhello"
    )
    return lambda request, handler: SimResponse(200, wire, close=True)


def invalid_chunks() -> Fault:
    """Send a chunked body with invalid chunk sizes."""
    wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n"
    return lambda request, handler: SimResponse(200, wire, close=True)


def junk(size_bytes: int = 4096) -> Fault:
    """Send random bytes instead of HTTP."""
    return lambda request, handler: SimResponse(
        0, random.Random(request.serial).randbytes(size_bytes), close=True
    )


def redirect(location: str, *, status: int = 302) -> Fault:
    """Redirect to `location`; `{origin}` and `{target}` in it are filled from the request."""

    def fault(request: SimRequest, handler: Handler) -> SimResponse:
        filled = location.replace("{origin}", request.origin).replace("{target}", request.target)
        return build_response(request, status, extra=f"Location: {filled}\r\n")

    return fault


def redirect_loop() -> Fault:
    """Redirect to the same URL."""
    return redirect("{target}", status=301)


def redirect_chain(hops: int) -> Fault:
    """Redirect `hops` times (same path, `hop` counts up), then respond normally."""

    def fault(request: SimRequest, handler: Handler) -> SimResponse:
        path, _, query = request.target.partition("?hop=")
        hop = int(query) if query.isascii() and query.isdigit() else 0
        if hop >= hops:
            return handler(request)
        return build_response(request, 302, extra=f"Location: {path}?hop={hop + 1}\r\n")

    return fault


def status(code: int) -> Fault:
    """Respond with a status and a short page about it."""
    return lambda request, handler: build_error_response(request, code)


def busy(code: int = 503, *, retry_after_s: float) -> Fault:
    """Respond with 503 or 429 and a Retry-After in seconds."""
    return lambda request, handler: build_response(
        request, code, b"busy", extra=f"Retry-After: {retry_after_s:.0f}\r\n"
    )


def soft_404() -> Fault:
    """Respond with 200 and an error page where the normal status is 404."""

    def fault(request: SimRequest, handler: Handler) -> SimResponse:
        response = handler(request)
        if response.status != 404:
            return response
        page = (
            "<!DOCTYPE html><title>Nothing here</title><h1>Sorry</h1>"
            f"<p>We looked everywhere for {len(request.path)} letters and found nothing.</p>"
        )
        return build_response(request, 200, page.encode())

    return fault


def wrong_content_type(content_type: str) -> Fault:
    """Respond normally but declare another Content-Type; an empty string drops the field."""

    def fault(request: SimRequest, handler: Handler) -> SimResponse:
        response = handler(request)
        head, end, body = response.to_bytes().partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Type:")]
        if content_type:
            lines.append(b"Content-Type: " + content_type.encode("latin-1"))
        return SimResponse(response.status, b"\r\n".join(lines) + end + body)

    return fault


def body(content: bytes, *, content_type: str) -> Fault:
    """Respond with 200 and this content for every page."""
    return lambda request, handler: build_response(request, 200, content, content_type=content_type)


def first_requests(times: int, fault: Fault) -> Fault:
    """Apply the fault to the first `times` requests only."""
    seen = count()
    return lambda request, handler: (
        fault(request, handler) if next(seen) < times else handler(request)
    )


def sometimes(share: float, fault: Fault, *, seed: int = 0) -> Fault:
    """Apply the fault to a share of the requests, drawn by request number."""
    return lambda request, handler: (
        fault(request, handler) if uniform(seed, request.serial) < share else handler(request)
    )


_NAMED: dict[str, Callable[[str], Fault]] = {
    "slow": lambda delay_s: slow(float(delay_s)),
    "hang": lambda _: hang(),
    "hang-mid-body": lambda _: hang_mid_body(),
    "close": lambda _: close_unanswered(),
    "close-mid-body": lambda _: close_mid_body(),
    "reset": lambda _: close_unanswered(reset=True),
    "drip": lambda every_s: drip(64, float(every_s)),
    "length": lambda by: wrong_length(int(by)),
    "gzip-bomb": lambda size_bytes: gzip_bomb(int(size_bytes)),
    "corrupt-gzip": lambda _: corrupt_gzip(),
    "endless-body": lambda _: endless_body(),
    "endless-header": lambda _: endless_header(),
    "huge-header": lambda size_bytes: huge_header(int(size_bytes)),
    "invalid-header": lambda _: invalid_header(),
    "invalid-chunks": lambda _: invalid_chunks(),
    "junk": lambda _: junk(),
    "redirect": redirect,
    "redirect-loop": lambda _: redirect_loop(),
    "redirect-chain": lambda hops: redirect_chain(int(hops)),
    "status": lambda code: status(int(code)),
    "busy": lambda retry_after_s: busy(retry_after_s=float(retry_after_s)),
    "too-many": lambda retry_after_s: busy(429, retry_after_s=float(retry_after_s)),
    "soft-404": lambda _: soft_404(),
    "mistyped": wrong_content_type,
}


def parse_fault(text: str) -> Fault:
    """Return the fault that a command line names as `NAME` or `NAME:ARGUMENT`.

    Raises:
        OperatorError: the fault is unknown, or its argument is missing or invalid.
    """
    name, _, argument = text.partition(":")
    try:
        return _NAMED[name](argument)
    except KeyError:
        raise OperatorError(
            f"there is no fault named {name!r}", hint=f"One of: {', '.join(_NAMED)}."
        ) from None
    except ValueError:
        raise OperatorError(f"the fault {name!r} needs a number, as in {name}:10") from None


def _cut(end: AbnormalEnd) -> Fault:
    def fault(request: SimRequest, handler: Handler) -> SimResponse:
        response = handler(request)
        head, mark, body = response.to_bytes().partition(b"\r\n\r\n")
        return SimResponse(response.status, (head + mark + body[: len(body) // 2], end), close=True)

    return fault
