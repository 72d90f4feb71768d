import pytest

from crawld.net.exchange import FetchRequest
from crawld.net.outgoing import request_target


@pytest.mark.parametrize(
    ("url", "host", "port", "authority"),
    [
        # can_ada alone refuses the first host.
        ("http://xn--5fj.org:8080/a?b", "xn--5fj.org", 8080, b"xn--5fj.org:8080"),
        ("https://xn--fa-hia.de/a?b", "xn--fa-hia.de", 443, b"xn--fa-hia.de"),
        ("http://[::1]:81/a?b", "[::1]", 81, b"[::1]:81"),
    ],
)
def test_any_canonical_host_can_be_asked(url, host, port, authority):
    target = request_target(FetchRequest(url=url))
    assert (target.endpoint.host, target.endpoint.port) == (host, port)
    assert (target.authority, target.path) == (authority, b"/a?b")
