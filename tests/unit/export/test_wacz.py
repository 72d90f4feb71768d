import hashlib
import io
import json
import struct
import zipfile

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawld.core.page import Outcome
from crawld.export.wacz import export_wacz, surt

H = "http://h.example"


def test_the_files_of_the_package(mirror, tmp_path):
    mirror.page(f"{H}/b", b"<title>B</title>", title="B")
    mirror.page(f"{H}/a", b"<title>A</title>", title="A")
    mirror.visit(f"{H}/a", Outcome.NOT_MODIFIED, status=304)
    mirror.page(f"{H}/i.png", b"\x89PNG", content_type="image/png")
    export_wacz(mirror.request(tmp_path / "m.wacz", title="Mine"))
    with zipfile.ZipFile(tmp_path / "m.wacz") as archive:
        package = json.loads(archive.read("datapackage.json"))
        assert package["title"] == "Mine"
        for resource in package["resources"]:
            content = archive.read(resource["path"])
            assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
            assert resource["bytes"] == len(content)
        digest = json.loads(archive.read("datapackage-digest.json"))["hash"]
        assert digest == f"sha256:{hashlib.sha256(archive.read('datapackage.json')).hexdigest()}"
        lines = archive.read("indexes/index.cdx").decode().splitlines()
        assert lines == sorted(lines)
        types = [json.loads(line.split(" ", 2)[2])["mime"] for line in lines]
        assert types == ["text/html", "warc/revisit", "text/html", "image/png"]
        with archive.open("archive/data.warc.gz") as file:
            for line in lines:
                entry = json.loads(line.split(" ", 2)[2])
                file.seek(int(entry["offset"]))
                record = next(iter(ArchiveIterator(file)))
                assert record.rec_headers.get_header("WARC-Target-URI") == entry["url"]
        pages = [json.loads(line) for line in archive.read("pages/pages.jsonl").splitlines()]
        assert [page.get("title") for page in pages] == ["Pages", "B", "A"]


def test_the_directory_has_an_extra_field_where_the_file_has_one(mirror, tmp_path):
    """ReplayWeb.page reads the length of the local extra field from the directory."""
    mirror.page(f"{H}/a", b"<title>A</title>")
    export_wacz(mirror.request(tmp_path / "m.wacz"))
    content = (tmp_path / "m.wacz").read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            (before,) = struct.unpack_from("<H", content, member.header_offset + 28)
            assert bool(member.extra) == bool(before)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://h.example/", "example,h)/"),
        ("https://www.a.org:8080/X?q=1", "org,a:8080)/x?q=1"),
        ("http://a.org/i.php?title=B&action=history", "org,a)/i.php?action=history&title=b"),
        ("http://a.org/?b&a=2&a=1", "org,a)/?a=1&a=2&b"),
        ("http://127.0.0.1/", "1,0,0,127)/"),
        ("http://[::1]/a", "[::1])/a"),
    ],
)
def test_surt(url, key):
    assert surt(url) == key
