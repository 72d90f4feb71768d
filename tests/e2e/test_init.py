"""`crawld init URL` beside real servers: the config that it writes mirrors the site."""

from urllib.parse import urlsplit

from crawld.config.load import load
from tests.e2e.daemon_config import query_rows
from tests.peer.crawld_process import PROMPT

FAST = (
    ('listen = "127.0.0.1:8080"', 'listen = "127.0.0.1:0"'),
    ("host_delay_s = 15.0", "host_delay_s = 0.02"),
)


def start(crawld):
    """Start a daemon with the written config, on a free port and without its pauses."""
    path = crawld.folder / "crawld.toml"
    text = path.read_text()
    for old, new in (*FAST, ('db = "crawld.db"', f'db = "{crawld.db}"')):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    crawld.start("run", "-c", path, program=PROMPT)


def visited(crawld):
    rows = query_rows(crawld, "SELECT url FROM page WHERE state = 'visited' AND requisite = 0")
    return {url for (url,) in rows}


def test_a_wiki_is_described_in_three_requests_and_mirrored(mediawiki, crawld):
    url = mediawiki.url(mediawiki.pages[0].title)
    ended = crawld.crawld("init", url, crawld.folder)
    assert ended.returncode == 0, ended.stderr
    assert "Entries, MediaWiki 1." in ended.stdout
    asked = [urlsplit(request.target).path for request in mediawiki.ledger().rows()]
    assert asked == ["/robots.txt", urlsplit(url).path, "/w/api.php"]
    [site] = load(crawld.folder / "crawld.toml").config.sites
    assert (site.seeds, site.api) == ((url,), True)
    assert site.exclude == ("prefix:/wiki/Special:",)
    start(crawld)
    crawld.wait_until(lambda _: len(visited(crawld)) > 2)
    crawld.wait_until(
        lambda _: query_rows(crawld, "SELECT 1 FROM wiki WHERE api_url LIKE '%/w/api.php'")
    )


def test_a_page_that_robots_txt_forbids_is_not_requested(mediawiki, crawld):
    mediawiki.set_robots("User-agent: *\nDisallow: /wiki/\n")
    ended = crawld.crawld("init", mediawiki.url(), crawld.folder)
    assert ended.returncode == 2
    assert "robots.txt forbids" in ended.stderr
    assert [request.target for request in mediawiki.ledger().rows()] == ["/robots.txt"]
    assert not (crawld.folder / "crawld.toml").exists()


def test_a_site_without_a_wiki_and_a_refused_port(nginx, crawld, tmp_path):
    tree = tmp_path / "tree" / "manual"
    tree.mkdir(parents=True)
    (tree / "start.html").write_text("<title>A manual</title><a href=next.html>next</a>")
    (tree / "next.html").write_text("<title>Next</title>")
    server = nginx({"127.0.0.1": tree.parent})
    ended = crawld.crawld("init", server.url("/manual/start.html"), crawld.folder)
    assert ended.returncode == 0, ended.stderr
    assert "no MediaWiki" in ended.stdout
    start(crawld)
    crawld.wait_until(lambda _: server.url("/manual/next.html") in visited(crawld))
    missing = crawld.crawld("init", server.url("/nothing"), tmp_path / "other")
    assert (missing.returncode, "status 404" in missing.stderr) == (2, True)
