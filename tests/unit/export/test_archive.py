import io

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawld.core.page import Outcome
from crawld.errors import OperatorError
from crawld.export.archive import export_warc

H = "http://h.example"


def records(path):
    """Return (type, header fields, HTTP status, HTTP header fields, body) of each record."""
    found = []
    with path.open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            http = record.http_headers
            found.append(
                (
                    record.rec_type,
                    dict(record.rec_headers.headers),
                    http.get_statuscode() if http and record.rec_type != "request" else None,
                    dict(http.headers) if http else {},
                    record.raw_stream.read(),
                )
            )
    return found


def export(mirror, tmp_path, **options):
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.warc.gz"
    result = export_warc(mirror.request(path, **options))
    return result, records(path)


def test_a_copy_is_response_request_and_metadata(mirror, tmp_path):
    mirror.page(f"{H}/a?b=1", b"<title>A</title>", headers=[(b"Content-Encoding", b"gzip")])
    _, (info, response, request, metadata) = export(mirror, tmp_path)
    assert info[0] == "warcinfo"
    kind, fields, status, http, body = response
    assert (kind, status, body) == ("response", "200", b"<title>A</title>")
    assert fields["WARC-Target-URI"] == f"{H}/a?b=1"
    assert http["X-Crawler-Content-Encoding"] == "gzip"
    assert http["Content-Length"] == "16"
    assert request[0] == "request"
    assert request[1]["WARC-Concurrent-To"] == fields["WARC-Record-ID"]
    assert request[1]["WARC-IP-Address"] == "192.0.2.1"
    assert metadata[4] == b"outcome: changed\r\nfetchTimeMs: 250\r\nbodyBytes: 16\r\n"


def test_unchanged_visits_are_revisits_that_refer_to_their_copy(mirror, tmp_path):
    mirror.page(f"{H}/", b"same")
    mirror.visit(f"{H}/", Outcome.NOT_MODIFIED, status=304, reason="Not Modified")
    mirror.visit(f"{H}/", Outcome.UNCHANGED, b"same")
    _, found = export(mirror, tmp_path)
    response = next(each for each in found if each[0] == "response")
    first, second = (each for each in found if each[0] == "revisit")
    assert first[1]["WARC-Profile"].endswith("server-not-modified")
    assert second[1]["WARC-Profile"].endswith("identical-payload-digest")
    assert (first[2], second[2]) == (None, "200")
    notes = [each[4] for each in found if each[0] == "metadata"]
    assert b"HTTP/1.1: 304 Not Modified\r\nContent-Type: text/html\r\n" in notes[1]
    for revisit in (first, second):
        assert revisit[1]["WARC-Refers-To"] == response[1]["WARC-Record-ID"]
        assert revisit[1]["WARC-Refers-To-Date"] == response[1]["WARC-Date"]
        assert revisit[1]["WARC-Refers-To-Target-URI"] == f"{H}/"
        assert revisit[1]["WARC-Payload-Digest"] == response[1]["WARC-Payload-Digest"]


def test_a_later_export_refers_to_the_records_of_an_earlier_one(mirror, tmp_path):
    mirror.page(f"{H}/", b"same")
    _, first = export(mirror, tmp_path)
    until = mirror.at + 1
    mirror.visit(f"{H}/", Outcome.NOT_MODIFIED, status=304)
    _, later = export(mirror, tmp_path, since=until)
    assert [each[0] for each in later] == ["warcinfo", "revisit", "request", "metadata"]
    assert later[1][1]["WARC-Refers-To"] == first[1][1]["WARC-Record-ID"]


def test_a_difference_in_noise_is_no_revisit(mirror, tmp_path):
    mirror.page(f"{H}/", b"at 10:00")
    mirror.visit(f"{H}/", Outcome.UNCHANGED, b"at 10:01")
    _, found = export(mirror, tmp_path)
    assert [each[0] for each in found].count("revisit") == 0
    assert b"outcome: unchanged" in found[-1][4]


def test_responses_without_a_copy(mirror, tmp_path):
    mirror.move(f"{H}/old", f"{H}/new")
    mirror.page(f"{H}/gone")
    mirror.visit(f"{H}/gone", Outcome.GONE, b"no", status=404, reason="Not Found")
    _, found = export(mirror, tmp_path)
    moved, gone = (each for each in found if each[0] == "response")
    assert (moved[2], moved[3]["Location"], moved[4]) == ("301", f"{H}/new", b"")
    assert gone[2] == "404"
    assert gone[1]["WARC-Truncated"] == "unspecified"


def test_the_same_export_twice_is_the_same(mirror, tmp_path):
    mirror.page(f"{H}/", b"one")
    assert export(mirror, tmp_path)[1] == export(mirror, tmp_path)[1]


def test_header_values_stay_on_one_line(mirror, tmp_path):
    mirror.page(f"{H}/", b"x", headers=[(b"X-Odd", b"a\r\nSet-Cookie: b")], reason="O\r\nK")
    _, found = export(mirror, tmp_path)
    assert found[1][3]["X-Odd"] == "aSet-Cookie: b"


def test_a_damaged_copy_is_left_out_and_named(mirror, tmp_path):
    mirror.page(f"{H}/", b"<p>" + b"words " * 100)
    mirror.write(lambda c: c.execute("UPDATE body SET data = zeroblob(8)"))
    assert export(mirror, tmp_path)[0].unreadable == [f"{H}/"]


def test_an_existing_file_is_not_overwritten(mirror, tmp_path):
    path = tmp_path / "kept"
    path.write_text("kept")
    with pytest.raises(OperatorError, match="exists"):
        export_warc(mirror.request(path))
    assert path.read_text() == "kept"


def test_nothing_is_left_of_an_export_that_fails(mirror, tmp_path):
    def fail(done, total):
        raise OperatorError("enough")

    mirror.page(f"{H}/", b"one")
    with pytest.raises(OperatorError, match="enough"):
        export_warc(mirror.request(tmp_path / "w.warc.gz", progress=fail))
    assert list(tmp_path.glob("w.warc*")) == []


def test_each_record_is_a_gzip_member(mirror, tmp_path):
    mirror.page(f"{H}/", b"one")
    path = tmp_path / "w.warc.gz"
    export_warc(mirror.request(path))
    assert path.read_bytes().count(b"\x1f\x8b\x08") == 4
    assert list(ArchiveIterator(io.BytesIO(path.read_bytes())))
