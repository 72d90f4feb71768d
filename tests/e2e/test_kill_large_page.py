"""SIGKILL between two parts of the links of one page: nothing of the page is lost."""

import signal
import sys

import pytest

from crawld.core.content.html import MAX_LINKS
from tests.e2e.daemon_config import query_rows, site, write_config

KILLED = (sys.executable, "-m", "tests.peer.killed_crawld")
LINKS = MAX_LINKS - 1
COUNTS = """
SELECT (SELECT count(*) FROM page),
       (SELECT count(*) FROM visit JOIN page USING (page_id) WHERE seed)
"""


@pytest.fixture
def start(crawld, nginx, tmp_path):
    """Return a function that starts a daemon on a page of links, and the config it uses."""
    tree = tmp_path / "tree"
    tree.mkdir()
    links = "".join(f"<a href=/page-{number}>{number}</a> " for number in range(LINKS))
    (tree / "index.html").write_text(f"<title>index</title> <p>{links}")
    seed = site(nginx({"127.0.0.1": tree}).url("/"), host_delay_s=1.0)
    config = write_config(crawld, seed, hosts=())

    def start(*, kill_after_parts=0, ready=True):
        crawld._environment["KILL_AFTER_PARTS"] = str(kill_after_parts)
        return crawld.start("run", "-c", config, ready=ready, program=KILLED)

    return start


@pytest.mark.parametrize("parts", [1, 3])
def test_a_kill_between_two_parts_loses_no_link_and_no_visit(crawld, start, parts):
    process = start(kill_after_parts=parts, ready=False)
    assert process.wait() == -signal.SIGKILL
    ((pages, visits),) = query_rows(crawld, COUNTS)
    assert 1 < pages < LINKS + 1
    assert visits == 0
    start()
    crawld.wait_until(lambda _: query_rows(crawld, COUNTS) == [(LINKS + 1, 1)])
    assert crawld.terminate() == 0
    assert crawld.crawld("doctor", "--db", crawld.db).returncode == 0
    assert query_rows(crawld, "SELECT count(*) FROM page WHERE seed AND version_id") == [(1,)]
