import gzip
from xml.etree import ElementTree

import pytest

from crawld.errors import OperatorError
from crawld.export.dump import export_dump
from crawld.store.changes import change
from crawld.store.changes.change import Change

H = "http://h.example"
NS = "{http://www.mediawiki.org/xml/export-0.11/}"


def test_histories_as_a_stub_dump(mirror, tmp_path):
    mirror.page(f"{H}/wiki/A", b"a")

    def fill(connection):
        connection.execute(
            "INSERT INTO wiki (origin_id, looked_at, api_url, facts)"
            " VALUES (1, 1.0, 'http://h.example/api.php', '{\"lang\": \"pl\"}')"
        )
        connection.execute(
            "INSERT INTO wiki_page (page_id, wiki_id, title, state, wiki_page_number)"
            " VALUES (1, 1, 'A & <b>\x01', 'complete', 42)"
        )
        revisions = [Change(86_400.0 * n, 100 + n, size_bytes=n) for n in (1, 2, 3)]
        change.insert(connection, 1, [*revisions, Change(5.0, 9, "log", "deletion")])

    mirror.write(fill)
    result = export_dump(mirror.request(tmp_path / "h.xml.gz", since=2 * 86_400.0))
    assert result.written == {"revisions": 2, "pages": 1}
    root = ElementTree.fromstring(gzip.decompress((tmp_path / "h.xml.gz").read_bytes()))
    page = root.find(f"{NS}page")
    assert page.findtext(f"{NS}title") == "A & <b>�"
    assert page.findtext(f"{NS}id") == "42"
    times = [each.findtext(f"{NS}timestamp") for each in page.iter(f"{NS}revision")]
    assert times == ["1970-01-03T00:00:00Z", "1970-01-04T00:00:00Z"]


def test_a_page_that_a_redirect_shows_stands_once_in_a_dump(mirror, tmp_path):
    for title in ("Old_name", "A", "Other"):
        mirror.page(f"{H}/wiki/{title}", title.encode())

    def fill(connection):
        connection.execute(
            "INSERT INTO wiki (origin_id, looked_at, api_url)"
            " VALUES (1, 1.0, 'http://h.example/api.php')"
        )
        rows = [(1, "Old name", 42, "A"), (2, "A", 42, "A"), (3, "Other", 43, "Other")]
        for page_id, title, number, shown in rows:
            connection.execute(
                "INSERT INTO wiki_page (page_id, wiki_id, title, state, wiki_page_number,"
                " shown_title) VALUES (?, 1, ?, 'complete', ?, ?)",
                (page_id, title, number, shown),
            )
            change.insert(connection, page_id, [Change(86_400.0, 100 + number)])

    def titles():
        export_dump(mirror.request(tmp_path / "h.xml"))
        root = ElementTree.parse(tmp_path / "h.xml").getroot()
        (tmp_path / "h.xml").unlink()
        return [page.findtext(f"{NS}title") for page in root.iter(f"{NS}page")]

    mirror.write(fill)
    assert titles() == ["A", "Other"]
    # A former title that was not resolved again since, and whose history was not read.
    former = "UPDATE wiki_page SET state = 'open', shown_title = title WHERE page_id = 1"
    read = "UPDATE wiki_page SET complete_until = 1 WHERE page_id = 2"
    mirror.write(lambda connection: connection.execute(f"{former}; {read}"))
    assert titles() == ["A", "Other"]
    # The mirror has only the redirect: its history is that of the page it shows.
    shows = "UPDATE wiki_page SET shown_title = 'A' WHERE page_id = 1"
    gone = "DELETE FROM change WHERE page_id = 2"
    mirror.write(lambda connection: connection.execute(f"{shows}; {gone}"))
    assert titles() == ["A", "Other"]


def test_a_dump_of_nothing_says_so_and_leaves_no_file(mirror, tmp_path):
    mirror.page(f"{H}/wiki/A", b"a")
    for name in ("h.xml", "h.xml.gz"):
        with pytest.raises(OperatorError, match="no history of a wiki is known"):
            export_dump(mirror.request(tmp_path / name))
    with pytest.raises(OperatorError, match="after 2001-09-09T01:46:40Z"):
        export_dump(mirror.request(tmp_path / "h.xml", since=1e9))
    assert list(tmp_path.glob("h.xml*")) == []
