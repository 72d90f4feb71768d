import io

import pytest
from libzim.reader import Archive
from libzim.search import Query, Searcher
from PIL import Image

from crawld.core.page import Outcome
from crawld.errors import OperatorError
from crawld.export.zim import export_zim
from crawld.export.zim_icon import make_icon, plain_icon

H = "http://h.example"


def encode_png(width, height):
    target = io.BytesIO()
    Image.radial_gradient("L").resize((width, height)).save(target, "PNG")
    return target.getvalue()


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
    assert bytes(archive.get_illustration_item(48).content) == plain_icon()


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


def metadata(archive):
    return {key: bytes(archive.get_metadata(key)).decode() for key in NAMES}


NAMES = ("Title", "Description", "Language")


def test_title_description_language_and_icon_come_from_the_site(mirror, tmp_path):
    long = "Lighthouses of the north, their keepers, and what they did all day in the wars since"
    mirror.page(
        f"{H}/",
        f'<html lang=de><meta name="Description" content=" {long}\n"><base href="/d/">'
        '<link rel="shortcut icon" href="none.png"><link rel=icon href="i.png">'.encode(),
        seed=True,
        title="Lighthouses of the northern coast",
    )
    image = encode_png(64, 64)
    mirror.page(f"{H}/d/i.png", image, content_type="image/png")
    _, archive = export(mirror, tmp_path)
    assert metadata(archive) == {
        "Title": "Lighthouses of the northern…",
        "Description": long.removesuffix(" since") + "…",
        "Language": "deu",
    }
    assert bytes(archive.get_illustration_item(48).content) == make_icon(image) != plain_icon()


def test_options_decide_before_the_site(mirror, tmp_path):
    mirror.page(f"{H}/", b"<html lang=de><meta name=description content=no>", title="no")
    (tmp_path / "i.png").write_bytes(encode_png(20, 10))
    given = {"title": "T", "description": "D", "language": "fr", "icon": tmp_path / "i.png"}
    _, archive = export(mirror, tmp_path, **given)
    assert metadata(archive) == {"Title": "T", "Description": "D", "Language": "fra"}
    icon = make_icon((tmp_path / "i.png").read_bytes())
    assert bytes(archive.get_illustration_item(48).content) == icon


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"language": "english"}, "not a language code"),
        ({"icon": "none.png"}, "cannot be read"),
        ({"icon": "text.png"}, "no icon"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_written(mirror, tmp_path, option, message):
    mirror.page(f"{H}/", b"front")
    (tmp_path / "text.png").write_text("no image")
    given = {name: tmp_path / text if name == "icon" else text for name, text in option.items()}
    with pytest.raises(OperatorError, match=message):
        export(mirror, tmp_path, **given)
    assert list(tmp_path.glob("*zim*")) == []


def test_an_export_tells_its_progress_and_its_stages(mirror, tmp_path):
    for number in range(4):
        mirror.page(f"{H}/{number}", b"<p>text")
    told = []
    export(mirror, tmp_path, progress=lambda *at: told.append(at), stage=told.append)
    pages = told[: told.index("index")]
    assert pages == [(1, 4), (2, 4), (3, 4), (4, 4), (4, 4)]
    done, total = told[-1]
    assert "compress" in told
    assert 0 < done <= total
