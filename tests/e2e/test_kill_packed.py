"""SIGKILL while pages are packed and while they become rows: each known URL stays, exactly once."""

import signal
import sys
from contextlib import closing

from crawld.store import doctor
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import packed_list
from tests.e2e.daemon_config import query_rows

PACKING = (sys.executable, "-m", "tests.peer.packing_crawld")
PAGES = 200
LINKS = 12
OPTIONS = ("--once", "--delay", "0", "--depth", "50", "--no-requisites", "--allow-private")


def links_of(page):
    """Return the pages that a page links to, some of them already known."""
    return [n for n in range(max(page * LINKS - 2, 0), (page + 1) * LINKS + 1) if n < PAGES]


def number_of(url):
    name = url.rsplit("/", 1)[1]
    return int(name.removesuffix(".html")) if name else 0


def known_urls(db):
    """Return the URLs that are rows, those that are packed, and those that were visited."""
    with closing(open_connection(db, read_only=True)) as connection:
        rows = connection.execute("SELECT url, state = 'visited' FROM page").fetchall()
        packed = packed_list.list_packed(connection, after=0, limit=PAGES)
    return (
        [url for url, _ in rows],
        [each.url for each in packed],
        [url for url, was in rows if was],
    )


def test_a_kill_in_the_middle_of_packing_loses_no_url(crawld, nginx, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    for page in range(PAGES):
        links = "".join(f"<a href=/{number}.html>{number}</a> " for number in links_of(page))
        name = "index.html" if page == 0 else f"{page}.html"
        (tree / name).write_text(f"<title>page {page}</title> <p>{links} text of page {page}")
    seed = nginx({"127.0.0.1": tree}).url("/")
    packed_then = []
    for kill_at in ("append 2", "insert 5", ""):
        crawld._environment["KILL_AT"] = kill_at
        process = crawld.start("mirror", seed, *OPTIONS, program=PACKING, ready=False)
        assert process.wait() == (-signal.SIGKILL if kill_at else 0)
        rows, packed, visited = known_urls(crawld.db)
        packed_then.append(len(packed))
        known = [*rows, *packed]
        assert len(known) == len(set(known))
        assert {0, *(n for url in visited for n in links_of(number_of(url)))} == set(
            map(number_of, known)
        )
        assert doctor.examine(crawld.db).findings == ()
    assert max(packed_then) > 0
    assert packed_then[-1] == 0
    assert query_rows(crawld, "SELECT count(*) FROM page WHERE state = 'visited'") == [
        (len(known),)
    ]
