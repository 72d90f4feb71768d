"""Secret request headers that a server repeats: they leave the fetcher in no form."""

import base64

import pytest
from pydantic import SecretStr

from crawld.net.exchange import FetchFailure
from tests.unit.net.scripted_server import answering, response
from tests.unit.net.test_fetcher import ask

PASSWORD = "correct horse"
BASIC = base64.b64encode(f"reader:{PASSWORD}".encode()).decode()
HEADERS = (
    ("Authorization", SecretStr(f"Basic {BASIC}")),
    ("X-Api-Key", SecretStr("3f9a")),
    ("Accept", "text/html"),
)


async def test_headers_that_repeat_a_secret_and_cookies_are_dropped(serve, fetcher):
    answer = response(
        b"hello",
        b'ETag: "text/html"',
        b"Set-Cookie: id=1",
        f"X-Seen: Authorization: Basic {BASIC}".encode(),
        f"Location: /?token={BASIC.lower()}".encode(),
        b"X-Key: <3F9A>",
        b"X-3f9a-Name: 1",
        b"WWW-Authenticate: Basic realm=x",
        status=f"200 {BASIC}".encode(),
    )
    site = await serve(answering(answer))
    got = await fetcher.fetch(ask(site, headers=HEADERS))
    assert BASIC.encode() in site.requests[0]
    names = [name for name, _ in got.headers]
    assert names == [b"ETag", b"WWW-Authenticate", b"Content-Length"]
    assert (got.body, got.reason) == (b"hello", "***")


@pytest.mark.parametrize(
    "line", [f"Bad Line: {BASIC}", f"Bad: x\x00Basic {BASIC}", f"{BASIC}", f"No {BASIC} colon"]
)
async def test_the_detail_of_a_failure_has_no_secret(serve, fetcher, line):
    head = b"HTTP/1.1 200 OK\r\n" + line.encode() + b"\r\n\r\n"
    site = await serve(answering(head))
    got = await fetcher.fetch(ask(site, headers=HEADERS))
    assert isinstance(got, FetchFailure)
    assert BASIC.lower() not in repr(got).lower()


async def test_without_secrets_a_response_stays_as_it_is(serve, fetcher):
    site = await serve(answering(response(b"", b"Set-Cookie: id=1", b"X: text/html")))
    got = await fetcher.fetch(ask(site, headers=HEADERS[2:]))
    assert got.headers[:2] == ((b"Set-Cookie", b"id=1"), (b"X", b"text/html"))
