import os
import random

import pytest
from libzim.reader import Archive
from libzim.search import Query, Searcher
from libzim.suggestion import SuggestionSearcher
from libzim.writer import Compression, Creator, Hint, Item, StringProvider

from crawld.export.zim_compress import compress, is_compressible

WORDS = ["harbour", "lighthouse", "keeper", "storm", "rope", "signal", "coast"]


class Entry(Item):
    def __init__(self, path, kind, content):
        super().__init__()
        self.path, self.kind, self.content = path, kind, content

    def get_path(self):
        return self.path

    def get_title(self):
        return f"Title of {self.path}"

    def get_mimetype(self):
        return self.kind

    def get_contentprovider(self):
        return StringProvider(self.content)

    def get_hints(self):
        return {Hint.FRONT_ARTICLE: self.kind == "text/html"}


def write(path, entries, *, cluster_bytes=2048, compression=Compression.none):
    creator = Creator(path).config_indexing(True, "eng")
    creator.config_compression(compression).config_clustersize(cluster_bytes)
    if compression is not Compression.none:
        creator.config_nbworkers(1)  # each takes 35 MB
    creator.set_mainpath("a/0")
    with creator:
        for entry in entries:
            creator.add_item(entry)
        creator.add_redirection("old", "Old", "a/0", {Hint.FRONT_ARTICLE: True})
        creator.add_metadata("Title", "T")
    return path


def articles(count, seed=1):
    chance = random.Random(seed)
    made = []
    for number in range(count):
        text = " ".join(chance.choices(WORDS, k=chance.randrange(1, 300)))
        made.append(Entry(f"a/{number}", "text/html", f"<p>{number} {text}".encode()))
        if number % 3 == 0:
            made.append(Entry(f"i/{number}.png", "image/png", chance.randbytes(number * 37)))
    return made


@pytest.mark.parametrize("count", [1, 2, 60])
@pytest.mark.parametrize("cluster_bytes", [1, 2048, 2 << 20])
def test_every_entry_of_the_copy_is_that_of_the_source(tmp_path, capfd, count, cluster_bytes):
    entries = articles(count)
    source = write(tmp_path / "s.zim", entries, cluster_bytes=cluster_bytes)
    compress(source, tmp_path / "t.zim")
    archive = Archive(tmp_path / "t.zim")
    assert archive.check()
    for entry in entries:
        found = archive.get_entry_by_path(entry.path)
        assert (found.title, found.get_item().mimetype) == (f"Title of {entry.path}", entry.kind)
        assert bytes(found.get_item().content) == entry.content
    assert archive.get_entry_by_path("old").get_redirect_entry().path == "a/0"
    assert archive.main_entry.get_redirect_entry().path == "a/0"
    assert bytes(archive.get_metadata("Title")) == b"T"
    assert archive.article_count == Archive(source).article_count


def test_indexes_are_read_in_place(tmp_path, capfd):
    compress(write(tmp_path / "s.zim", articles(40)), tmp_path / "t.zim")
    archive = Archive(tmp_path / "t.zim")
    found = Searcher(archive).search(Query().set_query("lighthouse"))
    assert found.getEstimatedMatches() > 20
    suggested = SuggestionSearcher(archive).suggest("Title of a/7")
    assert "a/7" in list(suggested.getResults(0, 3))


def test_text_is_compressed_and_images_are_not(tmp_path, capfd):
    text = b"<p>" + b"all the same " * 100_000
    image = os.urandom(100_000)
    entries = [Entry("a/0", "text/html", text), Entry("i.png", "image/png", image)]
    source = write(tmp_path / "s.zim", entries)
    compress(source, tmp_path / "t.zim")
    assert source.stat().st_size > len(text) + len(image)
    written = (tmp_path / "t.zim").read_bytes()
    assert len(written) < len(image) + 200_000
    assert image in written


def test_the_progress_ends_with_the_last_cluster(tmp_path, capfd):
    told = []
    source = write(tmp_path / "s.zim", articles(10))
    compress(source, tmp_path / "t.zim", lambda *at: told.append(at))
    assert told == sorted(told)
    assert all(0 < done <= total == source.stat().st_size for done, total in told)


def test_files_of_another_layout_are_refused(tmp_path, capfd):
    compressed = write(tmp_path / "c.zim", articles(3), compression=Compression.zstd)
    with pytest.raises(ValueError, match="compressed already"):
        compress(compressed, tmp_path / "t.zim")
    (tmp_path / "no.zim").write_bytes(b"x" * 200)
    with pytest.raises(ValueError, match="no ZIM"):
        compress(tmp_path / "no.zim", tmp_path / "u.zim")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("text/html", True),
        ("text/plain;charset=UTF-8", True),
        ("image/svg+xml", True),
        ("application/json", True),
        ("application/javascript", True),
        ("image/png", False),
        ("application/octet-stream+xapian", False),
        ("application/octet-stream+zimlisting", False),
        ("font/woff2", False),
    ],
)
def test_kinds_that_are_compressed(kind, expected):
    assert is_compressible(kind) is expected
