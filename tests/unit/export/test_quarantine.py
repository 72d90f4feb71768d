"""Exports keep the bytes of pages in quarantine, and rewrite none of them."""

import pytest

from crawld.export.static import export_static
from crawld.export.wacz import export_wacz
from crawld.export.zim import export_zim
from crawld.store.frontier import quarantine
from crawld.store.frontier.quarantine import UnderWay
from tests.unit.export import test_archive, test_zim

H = "http://h.example"
POISON = b'<title>Poison</title><a href="/">home</a>'
STYLE = b"body { background: url(/i.png) }"


@pytest.fixture
def held(mirror):
    """A mirror with a front page, and a page and a style sheet in quarantine."""
    mirror.page(f"{H}/", b'<a href="/poison">p</a>', seed=True, title="Front")
    mirror.page(f"{H}/poison", POISON)
    mirror.page(f"{H}/s.css", STYLE, content_type="text/css")
    found = [UnderWay(f"{H}/{name}", "analysis", evidence=True) for name in ("poison", "s.css")]
    mirror.write(lambda c: quarantine.settle(c, found, 1, mirror.at))
    return mirror


def test_a_static_export_shows_a_note_until_the_release(held, tmp_path):
    out = tmp_path / "out"
    export_static(held.request(out))
    page = out / "h.example" / "poison.html"
    assert "could not read this page" in page.read_text()
    assert 'href="poison.html"' in (out / "h.example" / "index.html").read_text()
    assert (out / "h.example" / "s.css").read_bytes() == STYLE
    held.write(lambda c: quarantine.release(c, f"{H}/poison"))
    held.page(f"{H}/poison", POISON)  # its next visit
    export_static(held.request(out))
    assert page.read_text() == '<title>Poison</title><a href="index.html">home</a>'


def test_archives_have_the_bytes_as_they_came(held, tmp_path):
    _, found = test_archive.export(held, tmp_path)
    bodies = {
        fields["WARC-Target-URI"]: body
        for kind, fields, *_, body in found[1:]
        if kind == "response"
    }
    assert bodies[f"{H}/poison"] == POISON
    export_wacz(held.request(tmp_path / "m.wacz"))


def test_a_zim_file_has_them_as_files(held, tmp_path):
    path = tmp_path / "m.zim"
    assert export_zim(held.request(path)).written == {"pages": 1, "files": 2}
    archive = test_zim.Archive(path)
    assert test_zim.content(archive, "h.example/poison") == POISON.decode()
    assert test_zim.content(archive, "h.example/s.css") == STYLE.decode()
