"""Pages are mirrored with their requisites: images, styles, scripts, fonts, on other hosts too."""

import pytest

from tests.e2e.daemon_config import query_rows, site, start_daemon
from tests.e2e.png import grey_png


@pytest.fixture
def site_tree(tmp_path):
    """A site of two pages with requisites on three hosts."""
    own, media, foreign = (tmp_path / name for name in ("own", "media", "foreign"))
    files = {
        own / "robots.txt": b"User-agent: *\nDisallow: /secret/\n",
        own / "style/main.css": b"@import 'more.css'; body { background: url(../img/back.png) }",
        own / "style/more.css": b"@font-face { font-family: f; src: url('/font/f.woff2') }",
        own / "font/f.woff2": b"wOF2" + bytes(40),
        own / "script.js": b"document.title = 'x';",
        own / "img/back.png": grey_png(b"\x01"),
        own / "img/one.png": grey_png(b"\x02"),
        own / "img/two.png": grey_png(b"\x03"),
        own / "img/linked.png": grey_png(b"\x04"),
        own / "secret/hidden.png": grey_png(b"\x05"),
        own / "film.mp4": bytes(50),
        own / "favicon.ico": b"\0\0\1\0" + bytes(20),
        media / "shown.png": grey_png(b"\x06"),
        foreign / "spy.png": grey_png(b"\x07"),
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return own, media, foreign


HEAD = (
    '<link rel="icon" href="favicon.ico"><link rel="preload" as="font" href="font/f.woff2">'
    '<link rel=stylesheet href="/style/main.css"><script src="script.js"></script>'
)


@pytest.fixture
def peer(nginx, site_tree):
    """The three hosts, served by nginx; `a.test` has the pages."""
    own, media, foreign = site_tree
    server = nginx({"a.test": own, "media.a.test": media, "foreign.test": foreign})
    write_pages(own, server.port)
    return server


@pytest.fixture
def start(crawld, peer):
    """Return a function that starts a daemon on the site."""

    def run(min_revisit_s=3600.0, **options):
        start_daemon(
            crawld,
            site(f"http://a.test:{peer.port}/", requisites=True, **options),
            hosts=peer.hosts,
            schedule={"min_revisit_s": min_revisit_s},
        )

    return run


def write_pages(own, port):
    (own / "index.html").write_text(
        f'<html><head>{HEAD}</head><body><img src="img/one.png" srcset="img/one.png 1x,'
        ' img/two.png 2x"><a href="img/linked.png">big</a> <a href="b.html">b</a>'
        f'<img src="http://media.a.test:{port}/shown.png">'
        f'<img src="http://foreign.test:{port}/spy.png"><video src="film.mp4"></video>'
        '<img src="/secret/hidden.png"><img src="/missing.png"></body></html>'
    )
    (own / "b.html").write_text(f'<head>{HEAD}</head><img src="img/linked.png"><p>b</p>')


def requisites(crawld):
    """Return the outcome and failure of each visited requisite by URL path."""
    found = query_rows(
        crawld,
        "SELECT url, last_outcome, last_failure FROM page WHERE requisite = 1 AND state <>"
        " 'discovered'",
    )
    return {url.split("/", 3)[3]: tuple(rest) for url, *rest in found}


OWN_REQUISITES = {
    "style/main.css",
    "style/more.css",
    "font/f.woff2",
    "script.js",
    "img/back.png",
    "img/one.png",
    "img/two.png",
    "favicon.ico",
}


def test_pages_are_mirrored_with_their_requisites(crawld, peer, start):
    start()
    found = {
        **dict.fromkeys([*OWN_REQUISITES, "shown.png"], ("changed", None)),
        "missing.png": ("gone", None),
    }
    crawld.wait_until(lambda _: found.keys() <= requisites(crawld).keys())
    crawld.post("/drain")
    known = requisites(crawld)
    # Nothing that robots.txt, host or type exclude; an image both linked and shown is a requisite.
    assert known.pop("img/linked.png") == ("changed", None)
    assert known == found
    asked = {row.target for row in peer.ledger().rows()}
    assert not {"/spy.png", "/secret/hidden.png", "/film.mp4"} & asked
    [[pages, counted]] = query_rows(crawld, "SELECT page_count, requisite_count FROM site")
    assert (pages, counted) == (2, len(found) + 1)
    # A time of nginx is the difference of two that it cuts to milliseconds.
    assert peer.ledger().violations(delay_s=0.05 - 0.002) == []
    report = crawld.crawld("doctor", "--db", crawld.db)
    assert report.returncode == 0, report.stdout


def test_requisite_hosts_are_fetched_from(crawld, start):
    start(requisite_hosts=["foreign.test"])
    crawld.wait_until(lambda _: requisites(crawld).get("spy.png") == ("changed", None))


def test_new_requisites_of_a_changed_page_are_fetched_and_old_ones_are_not(
    crawld, start, site_tree
):
    own, *_ = site_tree
    start(min_revisit_s=0.2)
    crawld.wait_until(lambda _: requisites(crawld).keys() >= OWN_REQUISITES)
    (own / "img/new.png").write_bytes(grey_png(b"\x09"))
    (own / "b.html").write_text('<p>now with a picture</p><img src="img/new.png">')
    crawld.wait_until(lambda _: requisites(crawld).get("img/new.png") == ("changed", None))
    crawld.post("/drain")
    visits = dict(
        query_rows(
            crawld,
            "SELECT url, count(*) FROM visit JOIN page USING (page_id) WHERE requisite = 1"
            " AND outcome IN ('changed', 'unchanged', 'not_modified') GROUP BY page_id",
        )
    )
    assert set(visits.values()) == {1}
    [[uses]] = query_rows(
        crawld,
        "SELECT length(requisites) / 8 FROM requisite_use JOIN page USING (page_id)"
        " WHERE url LIKE '%/b.html'",
    )
    assert uses == 1
