"""URLs of pages that a page names."""

import pytest

from crawld.daemon.visit.content import read_content
from crawld.net.exchange import FetchResponse

URL = "https://example.org/d/"


def make_response(body):
    return FetchResponse(
        status=200,
        reason="OK",
        http_version="HTTP/1.1",
        headers=((b"content-type", b"text/html"),),
        body=body.encode(),
        wire_bytes=len(body),
        address="192.0.2.1",
        sent_at=0.0,
        arrived_at=0.0,
        ended_at=0.0,
        duration_s=0.0,
    )


@pytest.mark.parametrize(
    ("body", "urls"),
    [
        ("<a href=a><area href=b>", ["a", "b"]),
        ("<iframe src=a></iframe><a href=b>", ["a", "b"]),
        ("<frameset><frame src=a></frameset>", ["a"]),
        ('<meta http-equiv=refresh content="0; url=a?b&amp;c"><a href=b>', ["b", "a?b&c"]),
        ("<meta http-equiv=refresh content=30>", []),
        ("<meta name=robots content=nofollow><meta http-equiv=refresh content=0;a>", []),
    ],
)
def test_links_frames_and_refreshes_name_pages(body, urls):
    assert list(read_content(URL, make_response(body), 100).urls) == [URL + url for url in urls]
