"""The line on mirrored pages."""

from crawld.core.page import Outcome
from crawld.web.banner import _LINK_STYLE
from tests.unit.web.conftest import DAY_S, NOW, PATH, URL, sent


class TestBanner:
    WIKI = (
        '<html><head><meta name="generator" content="MediaWiki 1.39">'
        '<link rel="license" href="https://creativecommons.org/licenses/by-sa/4.0/">'
        '<script>{"wgRevisionId":1234,"x":1}</script></head><body>text</body></html>'
    )

    def test_the_banner_has_source_time_revision_license_and_authors(self, mirror):
        mirror.page(URL, self.WIKI)
        line = sent(mirror.get(PATH)).partition("<body>")[2].partition("</crawld-banner")[0]
        for part in (
            f'href="{URL}"',
            "made 2026-05-28 20:26 UTC",
            "revision 1234",
            "CC BY-SA 4.0</a>",
            f'href="{URL}?action=history"',
            'href="/versions/https/example.org/a"',
        ):
            assert part in line

    def test_an_older_copy_says_so_and_leads_to_the_newest(self, mirror, header_of):
        page_id = mirror.page(URL, "<p>one")
        before = mirror.get(f"/@v1{PATH}")
        mirror.changed(page_id, "<p>two", at=NOW + 60, kind="text/html", title="A title")
        after = mirror.get(f"/@v1{PATH}")
        assert "an older copy" not in sent(before)
        assert f"an older copy</b>, <a rel=noreferrer style='{_LINK_STYLE}' href=\"{PATH}\"" in (
            sent(after)
        )
        assert header_of(before, "etag") != header_of(after, "etag")
        assert "an older copy" not in sent(mirror.get(PATH))
        assert "an older copy" not in sent(mirror.get(f"/@v2{PATH}"))

    def test_a_vanished_page_says_when_it_was_looked_for(self, mirror, header_of):
        page_id = mirror.page(URL, "<p>text")
        mirror.visited(page_id, Outcome.GONE, at=NOW + DAY_S)
        replies = [mirror.get(PATH, now=NOW + DAY_S + s) for s in (20, 40, 1570, 1580, 90_000)]
        said = [sent(reply).partition("looked at, ")[2].partition("<")[0] for reply in replies]
        assert said == ["just now", "just now", "25 min ago", "25 min ago", "25 h ago"]
        tags = [header_of(reply, "etag") for reply in replies]
        assert tags[0] == tags[1] != tags[2] == tags[3] != tags[4]

    def test_a_held_copy_says_so_and_leads_to_the_newest(self, mirror):
        mirror.configure(settle_s=3600.0)
        page_id = mirror.page(URL, "<p>one", at=NOW - DAY_S)
        mirror.changed(page_id, "<p>two", at=NOW, kind="text/html", title="A title")
        page = sent(mirror.get(PATH, now=NOW + 1))
        assert "<p>one" in page
        assert "held: a newer copy has not settled yet" in page
        assert f'href="/@v2{PATH}">newest' in page
        assert "held:" not in sent(mirror.get(PATH, now=NOW + DAY_S))

    def test_a_url_in_the_banner_is_escaped(self, mirror):
        mirror.page("https://example.org/?%22%3E&'", "<body>")
        assert "'<" not in sent(mirror.get("/https/example.org/?%22%3E&%27"))

    def test_a_license_url_with_a_script_is_ignored(self, mirror):
        mirror.page(URL, '<link rel="license" href="javascript:alert(1)"><body>')
        assert "javascript:alert(1)</a>" not in sent(mirror.get(PATH))
