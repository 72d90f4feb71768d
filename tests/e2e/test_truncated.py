"""A page larger than the limits: its start is kept and marked, where the site asks for it."""

import gzip

import pytest

from tests.e2e.daemon_config import query_rows, site, start_daemon

LIMIT_BYTES = 50_000
STARTS = "<html><title>Long</title><body>"
LINES = "".join(f"<p>Line {number} of a long page.</p>\n" for number in range(10_000))


@pytest.fixture
def peer(nginx, tmp_path):
    """A site of a short and a long page."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "index.html").write_text(
        "<html><title>Start</title><body>A short page.<a href=long.html>long</a>"
    )
    (tree / "long.html").write_text(STARTS + LINES)
    return nginx({"a.test": tree})


def start(crawld, peer, **options):
    start_daemon(
        crawld,
        site(f"http://a.test:{peer.port}/", **options),
        hosts=peer.hosts,
        fetch={"max_wire_bytes": LIMIT_BYTES, "max_body_bytes": LIMIT_BYTES},
        schedule={"min_revisit_s": 0.2},
    )


def visits(crawld, path):
    return query_rows(
        crawld,
        "SELECT outcome, failure, visit.version_id FROM visit JOIN page USING (page_id)"
        " WHERE url LIKE ? ORDER BY visit_id",
        f"%{path}",
    )


def test_the_start_of_a_large_page_is_kept_and_marked(crawld, peer, tmp_path):
    start(crawld, peer, truncate=True)
    crawld.wait_until(lambda _: len(visits(crawld, "long.html")) >= 3)
    first, *later = visits(crawld, "long.html")
    assert first[:2] == ("changed", None)
    assert {outcome for outcome, *_ in later} <= {"not_modified", "unchanged"}
    kept = query_rows(
        crawld,
        "SELECT url LIKE '%long.html', truncated, size_bytes FROM version JOIN page USING (page_id)"
        " JOIN body USING (body_id) ORDER BY 1",
    )
    assert [row[:2] for row in kept] == [(0, 0), (1, 1)]
    assert kept[1][2] == LIMIT_BYTES

    url = f"http://a.test:{peer.port}/long.html"
    assert "truncated" in crawld.crawlctl("page", url).stdout
    assert "truncated" in crawld.crawlctl("history", url).stdout
    assert "truncated" not in crawld.crawlctl("page", f"http://a.test:{peer.port}/").stdout
    crawld.terminate()
    archive = tmp_path / "a.warc.gz"
    assert crawld.crawld("export", "warc", "--db", crawld.db, "--out", archive).returncode == 0
    records = gzip.decompress(archive.read_bytes()).split(b"WARC/1.1\r\n")
    marked = [each for each in records if b"WARC-Truncated: length" in each]
    responses = [each for each in marked if b"WARC-Type: response" in each]
    assert len(responses) == 1
    assert b"Line 1 of a long page" in responses[0]


def test_without_it_a_large_page_fails(crawld, peer):
    start(crawld, peer)
    crawld.wait_until(lambda _: visits(crawld, "long.html"))
    assert visits(crawld, "long.html")[0] == ("failed", "too_large", None)
