import re

import pytest

from crawld.core.page import Outcome
from crawld.errors import DatabaseInUseError, OperatorError
from crawld.export.static import export_static
from crawld.store.mirror.export_manifest import Manifest
from crawld.store.versions import purge

H = "http://h.example"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def export(mirror, out, **options):
    return export_static(mirror.request(out, **options))


def text(out, path):
    return (out / "h.example" / path).read_text()


def test_links_are_relative_to_exported_pages_and_original_to_others(mirror, out):
    mirror.page(
        f"{H}/",
        b'<a href="/d/b#s">b</a><a href="/none">n</a><a href="https://other.example/x">o</a>',
        seed=True,
    )
    mirror.page(f"{H}/d/b", b'<a href="../">up</a>')
    mirror.page(f"{H}/none")
    assert export(mirror, out).written["pages"] == 2
    assert text(out, "index.html") == (
        f'<a href="d/b.html#s">b</a><a href="{H}/none">n</a><a href="https://other.example/x">o</a>'
    )
    assert text(out, "d/b.html") == '<a href="../index.html">up</a>'
    assert 'href="h.example/index.html"' in (out / "index.html").read_text()


def test_requisites_and_styles(mirror, out):
    mirror.page(f"{H}/", b'<link rel=stylesheet href="/s.css?v=1"><img src="i.png">')
    mirror.page(f"{H}/s.css?v=1", b"a{background:url(i.png)}", content_type="text/css")
    mirror.page(f"{H}/i.png", b"\x89PNG", content_type="image/png")
    export(mirror, out)
    css = re.search(r'href="?(s~\w+\.css)', text(out, "index.html"))[1]
    assert text(out, css) == "a{background:url(i.png)}"
    assert (out / "h.example/i.png").read_bytes() == b"\x89PNG"


def test_unchanged_pages_are_not_written_again(mirror, out):
    for name in "abc":
        mirror.page(f"{H}/{name}", name.encode())
    export(mirror, out)
    before = {path: path.stat().st_mtime_ns for path in (out / "h.example").iterdir()}
    mirror.visit(f"{H}/b", Outcome.CHANGED, b"new")
    assert export(mirror, out).written["pages"] == 1
    assert text(out, "b.html") == "new"
    touched = [path.name for path, at in before.items() if path.stat().st_mtime_ns != at]
    assert touched == ["b.html"]
    assert export(mirror, out).written == {"pages": 0, "redirects": 0}


def test_a_page_that_links_to_a_new_page_is_written_again(mirror, out):
    mirror.page(f"{H}/", b'<a href="/late">l</a>')
    mirror.page(f"{H}/late")
    export(mirror, out)
    assert f'href="{H}/late"' in text(out, "index.html")
    mirror.visit(f"{H}/late", Outcome.CHANGED, b"here")
    assert export(mirror, out).written["pages"] == 2
    assert 'href="late.html"' in text(out, "index.html")


def test_pages_link_to_redirects_and_images_to_their_target(mirror, out):
    mirror.page(f"{H}/", b'<a href="/old">o</a><img src="/old.png">')
    mirror.page(f"{H}/new", b"new")
    mirror.page(f"{H}/new.png", b"\x89PNG", content_type="image/png")
    mirror.move(f"{H}/old", f"{H}/new")
    mirror.move(f"{H}/old.png", f"{H}/new.png")
    mirror.move(f"{H}/away", "https://other.example/")
    assert export(mirror, out).written["redirects"] == 3
    assert text(out, "index.html") == '<a href="old.html">o</a><img src="new.png">'
    assert 'content="0; url=new.html"' in text(out, "old.html")
    assert 'content="0; url=https://other.example/"' in text(out, "away.html")


def test_colliding_names_get_different_paths_that_stay(mirror, out):
    for path in ("/a", "/A", "/a.html", "/x", "/x/", "/x/y"):
        mirror.page(f"{H}{path}", path.encode())
    export(mirror, out)
    files = {path.read_bytes(): path for path in (out / "h.example").rglob("*") if path.is_file()}
    assert set(files) == {b"/a", b"/A", b"/a.html", b"/x", b"/x/", b"/x/y"}
    assert len({str(path).casefold() for path in files.values()}) == 6
    mirror.visit(f"{H}/A", Outcome.CHANGED, b"/A")
    export(mirror, out)
    assert files[b"/A"].read_bytes() == b"/A"


def test_a_purged_page_becomes_a_note_without_its_url(mirror, out):
    mirror.page(f"{H}/secret", b"secret")
    mirror.page(f"{H}/", b"front")
    export(mirror, out)
    mirror.write(lambda c: purge.purge(c, f"{H}/secret", mirror.at))
    assert export(mirror, out).written["removed"] == 1
    assert "secret" not in text(out, "secret.html")
    assert "removed" not in export(mirror, out).written


def test_a_charset_from_the_header_is_declared_in_the_file(mirror, out):
    mirror.page(f"{H}/", "<p>Łódź".encode("iso-8859-2"), charset="iso8859-2")
    export(mirror, out)
    assert (out / "h.example/index.html").read_bytes() == "<p>Łódź".encode("utf-8-sig")


def test_since_leaves_older_copies_out(mirror, out):
    mirror.page(f"{H}/old", b"old")
    mirror.page(f"{H}/new", b"new")
    assert export(mirror, out, since=mirror.at).written["pages"] == 1
    assert not (out / "h.example/old.html").exists()


def test_many_pages_are_written_by_several_processes(mirror, out):
    links = "".join(f'<a href="/{n}">{n}</a>' for n in range(0, 400, 10)).encode()
    for number in range(400):
        mirror.page(f"{H}/{number}", b"%d %s" % (number, links))
    assert export(mirror, out).written["pages"] == 400
    assert text(out, "399.html").startswith('399 <a href="0.html">')
    assert list(out.rglob(".crawld-partial*")) == []


def test_temporary_files_of_killed_exports_are_deleted(mirror, out):
    mirror.page(f"{H}/a", b"<title>A</title>")
    export_static(mirror.request(out))
    old = out / ".crawld/room-of-a-killed-one"
    old.mkdir()
    (old / ".crawld-partial-1").write_bytes(b"half")
    export_static(mirror.request(out))
    assert sorted(each.name for each in (out / ".crawld").iterdir()) == ["lock", "manifest.db"]


def test_a_damaged_copy_is_left_out_and_named(mirror, out):
    mirror.page(f"{H}/", b"<p>" + b"words " * 100)
    mirror.write(lambda c: c.execute("UPDATE body SET data = zeroblob(8)"))
    assert export(mirror, out).unreadable == [f"{H}/"]


def test_a_directory_with_other_files_is_refused(mirror, out):
    out.mkdir()
    (out / "photo.jpg").write_text("")
    with pytest.raises(OperatorError, match="not a static export"):
        export(mirror, out)


def test_the_export_of_another_mirror_is_refused(mirror, out):
    mirror.page(f"{H}/", b"")
    export(mirror, out)
    mirror.write(lambda c: c.execute("UPDATE site SET added_at = 7.0"))
    with pytest.raises(OperatorError, match="another mirror"):
        export(mirror, out)


def test_two_exports_into_one_directory(mirror, out):
    mirror.page(f"{H}/", b"")
    export(mirror, out)
    with Manifest(out / ".crawld/manifest.db", "site@1.5"), pytest.raises(DatabaseInUseError):
        export(mirror, out)


def test_a_manifest_that_is_a_link_is_refused(mirror, out, tmp_path):
    out.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (out / ".crawld").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OperatorError, match="symbolic link"):
        export(mirror, out)
