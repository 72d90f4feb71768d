import gzip
from contextlib import closing

import pytest

from crawld.errors import DatabaseInUseError, OperatorError
from crawld.export import warc
from crawld.export.archive import export_warc
from crawld.export.importer import dechunk, import_urls, import_warc
from crawld.export.source import ExportRequest
from crawld.export.zim import export_zim
from crawld.export.zim_reader import import_zim
from crawld.store import doctor
from crawld.store.engine.connection import open_connection
from crawld.store.engine.lock import DatabaseLock
from crawld.store.versions import purge
from crawld.store.versions.body import decode
from tests.pdf_files import encrypted, make_pdf

H = "http://h.example"
NOW = 1_790_000_000.0


def rows(db, sql, *bindings):
    with closing(open_connection(db, read_only=True)) as connection:
        return connection.execute(sql, bindings).fetchall()


def response(url, body, *, at=1.7e9, head="HTTP/1.1 200 OK", headers="Content-Type: text/html"):
    block = f"{head}\r\n{headers}\r\n\r\n".encode() + body
    fields = [("WARC-Target-URI", url), ("Content-Type", "application/http; msgtype=response")]
    return warc.record("response", "urn:x", at, fields, block)


@pytest.fixture
def db(tmp_path):
    return tmp_path / "new.db"


def import_records(db, tmp_path, *records):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(records))
    return import_warc(db, [path], now=NOW)


def test_an_exported_mirror_is_imported_as_unvisited(mirror, db, tmp_path):
    mirror.page(f"{H}/", b"<title>Front</title>", title="Front")
    mirror.page(f"{H}/i.png", b"\x89PNG\r\n\x1a\n", content_type="image/png")
    export_warc(mirror.request(tmp_path / "m.warc.gz"))
    result = import_warc(db, [tmp_path / "m.warc.gz"], now=NOW)
    assert (result.counts["new_pages"], result.counts["versions"], result.faults) == (2, 2, [])
    columns = "url, state, title, digest, last_visit_at, visited_at, content_type"
    found = rows(db, f"SELECT {columns} FROM page JOIN version USING (version_id) ORDER BY url")
    assert [row[:5] for row in found] == [
        (f"{H}/", "discovered", "Front", None, None),
        (f"{H}/i.png", "discovered", None, None, None),
    ]
    assert found[0][5] == mirror.at - 60.0
    assert rows(db, "SELECT name, definition FROM site") == [("h.example", None)]
    assert doctor.examine(db).findings == ()


def test_pdfs_get_their_text_and_title(db, tmp_path):
    headers = "Content-Type: application/octet-stream"
    result = import_records(
        db,
        tmp_path,
        response(f"{H}/a", make_pdf("The old ferry", title="Ferries"), headers=headers),
        response(f"{H}/b", encrypted(make_pdf("a secret")), headers=headers),
        response(f"{H}/c", b"<title>t</title>page"),
    )
    assert result.counts == {"new_pages": 3, "versions": 3, "pdf_without_text": 1}
    found = rows(
        db,
        "SELECT url, title, content_type, document_text.encoding, document_text.size_bytes,"
        " document_text.data FROM page JOIN version USING (version_id)"
        " LEFT JOIN document_text USING (body_id) ORDER BY url",
    )
    assert [row[:3] for row in found] == [
        (f"{H}/a", "Ferries", "application/pdf"),
        (f"{H}/b", None, "application/pdf"),
        (f"{H}/c", "t", "text/html"),
    ]
    assert b"The old ferry" in decode(*found[0][3:])
    assert found[1][5] is None


def test_the_same_import_twice_stores_nothing_twice(db, tmp_path):
    records = [response(f"{H}/", b"one"), response(f"{H}/", b"two", at=1.71e9)]
    assert import_records(db, tmp_path, *records).counts["versions"] == 2
    assert import_records(db, tmp_path, *records).counts == {}
    more = import_records(db, tmp_path, *records, response(f"{H}/b", b"b"))
    assert more.counts == {"new_pages": 1, "versions": 1, "known": 2}
    newest = "SELECT visited_at FROM version JOIN page USING (version_id) WHERE page.page_id = 1"
    assert rows(db, newest) == [(1.71e9,)]


def test_bodies_are_decoded(db, tmp_path):
    packed = gzip.compress(b"<p>hello")
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed)
    headers = "Content-Type: text/html\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip"
    import_records(db, tmp_path, response(f"{H}/", chunked, headers=headers))
    assert rows(db, "SELECT size_bytes FROM body") == [(8,)]


@pytest.mark.parametrize(
    "record",
    [
        response("ftp://h.example/", b"x"),
        response(f"{H}/", b"no", head="HTTP/1.1 404 Not Found"),
        response("http://[bad/", b"x"),
        response(f"{H}/", b"x", head="nonsense"),
        response(f"{H}/", b"not gzip", headers="Content-Encoding: gzip"),
        warc.record("revisit", "urn:x", 1.0, [("WARC-Target-URI", f"{H}/")], b""),
    ],
)
def test_records_that_are_no_page_are_skipped(db, tmp_path, record):
    check_skipped(db, tmp_path, record)


def test_a_body_above_the_limit_after_decoding_is_skipped(db, tmp_path, monkeypatch):
    monkeypatch.setattr("crawld.export.importer.MAX_BLOCK_BYTES", 10_000)
    compressed = gzip.compress(b"0" * 10_001)
    record = response(f"{H}/", compressed, headers="Content-Encoding: gzip")
    check_skipped(db, tmp_path, record)


def check_skipped(db, tmp_path, record):
    result = import_records(db, tmp_path, record, response(f"{H}/good", b"good"))
    assert result.counts["versions"] == 1
    assert result.counts.get("unusable", 0) + result.counts.get("passed_over", 0) == 1
    assert result.faults == []


def dated(text):
    """Return a record with this WARC-Date."""
    record = gzip.decompress(response(f"{H}/", b"x", at=1.7e9))
    return gzip.compress(record.replace(b"2023-11-14T22:13:20.000000Z", text.encode()))


@pytest.mark.parametrize(
    "text", ["", "nan", "5d", "now", "-1", "1700000000", "0001-01-01T00:00:00Z", "2026-13-01"]
)
def test_a_record_without_a_valid_date_is_unusable(db, tmp_path, text):
    result = import_records(db, tmp_path, dated(text), response(f"{H}/good", b"good"))
    assert (result.counts["versions"], result.counts["unusable"]) == (1, 1)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2023-11-14T22:13:20Z", 1.7e9),
        ("2023-11-14T22:13:20.5Z", 1.7e9 + 0.5),
        ("2023-11-14T22:13:20.123456789Z", 1.7e9 + 0.123456),
        ("2023-11-14", 1.7e9 - 80_000.0),
        ("9999-12-31T23:59:59Z", NOW),
    ],
)
def test_a_copy_has_the_date_of_its_record_but_no_future_one(db, tmp_path, text, at):
    import_records(db, tmp_path, dated(text))
    assert rows(db, "SELECT visited_at FROM version") == [(pytest.approx(at, abs=1e-4),)]


def test_a_truncated_file_gives_the_records_before_and_a_fault(db, tmp_path):
    last = response(f"{H}/b", bytes(range(256)) * 8)
    result = import_records(db, tmp_path, response(f"{H}/", b"one"), last[:-20])
    assert result.counts["versions"] == 1
    assert "truncated" in result.faults[0]


def test_an_import_continues_where_it_was_interrupted(db, tmp_path):
    records = [response(f"{H}/{n}", b"%d" % n) for n in range(450)]
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(records))

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_warc(db, [path], now=NOW, progress=stop)
    assert rows(db, "SELECT count(*) FROM version") == [(200,)]
    assert import_warc(db, [path], now=NOW).counts == {"new_pages": 250, "versions": 250}


def test_a_purged_page_is_not_imported(db, tmp_path):
    import_records(db, tmp_path, response(f"{H}/", b"one"))
    with closing(open_connection(db)) as connection:
        purge.purge(connection, f"{H}/", NOW)
    assert import_records(db, tmp_path, response(f"{H}/", b"one", at=2e9)).counts == {"kept_out": 1}


def test_a_database_in_use_is_refused(db, tmp_path):
    with DatabaseLock.acquire(db), pytest.raises(DatabaseInUseError):
        import_records(db, tmp_path, response(f"{H}/", b"one"))


def test_urls_become_seeds_to_visit(db, tmp_path):
    path = tmp_path / "urls.txt"
    path.write_text(f"# list\n\n{H}/a\nHTTP://H.example:80/a#x\nhttps://g.example/\nno url\n")
    result = import_urls(db, [path], now=NOW, site="mine")
    assert result.counts == {"new_pages": 2, "known": 1, "unusable": 1}
    assert "urls.txt line 6" in result.faults[0]
    found = rows(db, "SELECT url, seed, state, name FROM page JOIN site USING (site_id) ORDER BY 1")
    assert found == [
        (f"{H}/a", 1, "discovered", "mine"),
        ("https://g.example/", 1, "discovered", "mine"),
    ]


def test_a_zim_file_is_imported_with_and_without_a_base(mirror, db, tmp_path):
    mirror.page(f"{H}/", b"<title>Front</title>", title="Front")
    mirror.page(f"{H}/a?b=1", b"a")
    export_zim(ExportRequest(mirror.path, tmp_path / "m.zim", NOW))
    result = import_zim(db, [tmp_path / "m.zim"], now=NOW)
    assert result.counts["versions"] == 2
    dated = "SELECT url, visited_at <= ? FROM page JOIN version USING (page_id) ORDER BY url"
    assert rows(db, dated, NOW) == [(f"{H}/", 1), (f"{H}/a?b=1", 1)]
    based = tmp_path / "based.db"
    import_zim(based, [tmp_path / "m.zim"], now=NOW, base="https://g.example/wiki/")
    first = rows(based, "SELECT url FROM page ORDER BY url LIMIT 1")
    assert first == [("https://g.example/wiki/h.example/",)]


def test_a_file_that_is_no_zim_file_is_refused(db, tmp_path):
    (tmp_path / "x.zim").write_bytes(b"ZIM\x04" * 100)
    with pytest.raises(OperatorError, match="cannot be read"):
        import_zim(db, [tmp_path / "x.zim"], now=NOW)
    with pytest.raises(OperatorError, match="not a file"):
        import_zim(db, [tmp_path / "none.zim"], now=NOW)


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"already plain", b"already plain"),
        (b"", b""),
        (b"5\r\nab", b"ab"),
        (b"-5\r\nab\r\n", b""),
    ],
)
def test_dechunk(data, body):
    assert dechunk(data) == body
