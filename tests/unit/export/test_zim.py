import pytest
from libzim.reader import Archive
from libzim.search import Query, Searcher

from crawld.core.page import Outcome
from crawld.errors import OperatorError
from crawld.export.zim import export_zim, icon

H = "http://h.example"


def export(mirror, tmp_path, **options):
    path = tmp_path / "m.zim"
    result = export_zim(mirror.request(path, **options))
    return result, Archive(path)


def content(archive, path):
    return bytes(archive.get_entry_by_path(path).get_item().content).decode()


def test_pages_files_redirects_and_metadata(mirror, tmp_path):
    mirror.page(
        f"{H}/",
        b'<html lang="pl-PL"><a href="/a?b=1">x</a><a href="/old">o</a><img src="i.png">'
        b'<img src="/none.png"><a href="/none">n</a>',
        seed=True,
        title="Front",
    )
    mirror.page(f"{H}/a?b=1", b'<a href="/Talk:A">t</a>', title="A")
    mirror.page(f"{H}/Talk:A", "<p>Łódź".encode("iso-8859-2"), charset="iso8859-2")
    mirror.page(f"{H}/i.png", b"\x89PNG", content_type="image/png")
    mirror.move(f"{H}/old", f"{H}/a?b=1")
    mirror.move(f"{H}/away", "https://other.example/")
    result, archive = export(mirror, tmp_path)
    assert result.written == {"pages": 3, "files": 1, "redirects": 1}
    assert archive.check()
    assert content(archive, "h.example/") == (
        '<html lang="pl-PL"><a href="a%3Fb=1">x</a><a href="old">o</a><img src="i.png">'
        f'<img src="data:,"><a href="{H}/none">n</a>'
    )
    assert content(archive, "h.example/a?b=1") == '<a href="Talk%3AA">t</a>'
    assert content(archive, "h.example/Talk:A") == "<p>Łódź"
    assert archive.get_entry_by_path("h.example/old").is_redirect
    assert archive.main_entry.get_redirect_entry().path == "h.example/"
    facts = {key: bytes(archive.get_metadata(key)) for key in ("Title", "Language", "Source")}
    assert facts == {"Title": b"Front", "Language": b"pol", "Source": f"{H}/".encode()}
    assert bytes(archive.get_illustration_item(48).content) == icon()


def test_the_text_can_be_searched(mirror, tmp_path):
    mirror.page(f"{H}/", b"<title>One</title><p>lighthouse keeper", title="One")
    mirror.page(f"{H}/b", b"<title>Two</title><p>harbour", title="Two")
    _, archive = export(mirror, tmp_path)
    found = Searcher(archive).search(Query().set_query("lighthouse"))
    assert list(found.getResults(0, 5)) == ["h.example/"]


def test_urls_that_share_a_name(mirror, tmp_path):
    mirror.page(f"{H}/", b"plain")
    mirror.page("https://h.example/", b"tls")
    mirror.page(f"{H}/x", b'<a href="http://h.example/">p</a><a href="https://h.example/">t</a>')
    _, archive = export(mirror, tmp_path)
    plain, tls = content(archive, "h.example/x").split("</a>")[:2]
    assert plain == '<a href="./">p'
    assert content(archive, "h.example/" + tls.split('"')[1].removeprefix("./")) == "tls"


def test_a_mirror_without_pages_is_refused(mirror, tmp_path):
    with pytest.raises(OperatorError, match="no pages"):
        export(mirror, tmp_path)
    mirror.page(f"{H}/i.png", b"\x89PNG", content_type="image/png")
    with pytest.raises(OperatorError, match="no HTML page"):
        export(mirror, tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*zim*")) == []


def test_a_gone_page_keeps_its_copy(mirror, tmp_path):
    mirror.page(f"{H}/", b"kept")
    mirror.visit(f"{H}/", Outcome.GONE, status=404, state="gone")
    assert content(export(mirror, tmp_path)[1], "h.example/") == "kept"
