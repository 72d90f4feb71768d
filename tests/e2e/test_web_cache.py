"""contrib/nginx-mirror.conf: a real nginx cache in front of a real mirror."""

import contextlib
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.daemon_config import query_rows
from tests.peer.crawld_process import with_serve
from tests.peer.nginx_proxy import with_nginx_proxy

SNIPPET = Path(__file__).parents[2] / "contrib" / "nginx-mirror.conf"


def ask(port, target, **lines):
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    with contextlib.closing(connection):
        headers = {name.replace("_", "-"): value for name, value in lines.items()}
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


@pytest.fixture
def cached(cleanup, nginx, crawld, tmp_path):
    """A small mirror behind nginx: nginx's port, and the path of a mirrored page."""
    tree = tmp_path / "tree"
    (tree / "a").mkdir(parents=True)
    (tree / "index.html").write_text("<p>text" + " more" * 200)
    start = nginx({"127.0.0.1": tree}).url("/index.html")
    assert crawld.crawld("mirror", start, "--delay", "0", "--once").returncode == 0
    mirror = cleanup.enter_context(with_serve(crawld))
    snippet = SNIPPET.read_text()
    port = cleanup.enter_context(
        with_nginx_proxy(tmp_path / "front", snippet, urlsplit(mirror).port)
    )
    return port, "/" + start.replace("://", "/", 1)


def test_the_cache_answers_the_second_time(cached, crawld):
    port, target = cached
    first = ask(port, target)
    second = ask(port, target)
    assert (first[0], first[1]["X-Cache"]) == (200, "MISS")
    assert (second[0], second[1]["X-Cache"]) == (200, "HIT")
    assert first[2] == second[2]
    assert b"<p>text" in first[2]
    assert "sandbox" in second[1]["content-security-policy"]
    packed = ask(port, target, Accept_Encoding="gzip")
    assert packed[1]["Content-Encoding"] == "gzip"
    assert ask(port, target, If_None_Match=first[1]["etag"])[0] == 304
    assert query_rows(crawld, "SELECT count(*) FROM visit")[0][0] == 1


def test_the_cache_rejects_foreign_host_names(cached):
    port, target = cached
    assert ask(port, target)[0] == 200
    assert [ask(port, target, Host="evil.test")[0] for _ in range(2)] == [421, 421]
    assert ask(port, target)[1]["X-Cache"] == "HIT"


def test_addresses_pass_unchanged(cached):
    port, _ = cached
    for path in ("a//b", "a%2Fb?x=%C3%A9&y", "%7Bx%7D", "a/%2B"):
        status, _, body = ask(port, f"/https/example.org/{path}")
        assert status == 404
        assert f"https://example.org/{path}".replace("&", "&amp;").encode() in body
