"""Responses of the web mirror."""

from html import unescape

import pytest
import trio

from crawld.core.page import Outcome, PageState
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.versions import search_index, version
from crawld.web import assets
from crawld.web.mirror import DisplayOptions
from crawld.web.reply import Request
from tests.unit.web.conftest import DAY_S, NOW, PATH, URL, make_app, sent

PLAIN = DisplayOptions(banner=False)


class TestPages:
    def test_links_lead_to_the_mirror_or_to_the_original(self, mirror):
        mirror.page("https://example.org/b")
        mirror.page(URL, '<a href="b">b</a><a href="//other.org/x">o</a><img src="//cdn.org/i">')
        assert sent(mirror.get(PATH, display=PLAIN)) == (
            '<a href="/https/example.org/b">b</a><a href="https://other.org/x">o</a>'
            '<img src="/https/cdn.org/i">'
        )

    def test_refreshes_and_forms_stay_in_the_mirror(self, mirror):
        mirror.page(
            URL,
            '<meta http-equiv=refresh content="0;url=//other.org/r"><form action="//other.org/f">'
            '<button formaction="//other.org/b">',
        )
        page = sent(mirror.get(PATH, display=PLAIN))
        assert 'content="0;url=/https/other.org/r"' in page
        assert '<form action="/https/other.org/f">' in page
        assert '<button formaction="/https/other.org/b">' in page

    def test_style_sheets_and_images(self, mirror, header_of):
        mirror.page("https://example.org/s.css", "a{b:url(i.png)}", kind="text/css")
        mirror.page("https://example.org/i.png", b"\x89PNG", kind="image/png")
        css = mirror.get("/https/example.org/s.css")
        assert sent(css) == "a{b:url(/https/example.org/i.png)}"
        assert header_of(css, "content-type") == "text/css; charset=utf-8"
        image = mirror.get("/https/example.org/i.png")
        assert (image.body, header_of(image, "content-type")) == (b"\x89PNG", "image/png")

    def test_the_charset_is_declared(self, mirror, header_of):
        mirror.page(URL, "<p>ж".encode("cp1251"), charset="cp1251")
        reply = mirror.get(PATH, display=PLAIN)
        assert reply.body == "<p>ж".encode("cp1251")
        assert header_of(reply, "content-type") == "text/html; charset=windows-1251"

    def test_a_charset_that_cannot_be_edited_by_bytes_becomes_utf8(self, mirror, header_of):
        mirror.page(URL, "<p>表".encode("cp932"), charset="cp932")
        reply = mirror.get(PATH, display=PLAIN)
        assert reply.body.decode("utf-8-sig") == "<p>表"
        assert header_of(reply, "content-type") == "text/html; charset=utf-8"

    def test_an_unknown_page(self, mirror):
        reply = mirror.get("/https/example.org/none?x=%27&y")
        assert reply.status == 404
        assert 'href="https://example.org/none?x=%27&amp;y"' in sent(reply)

    @pytest.mark.parametrize(
        ("url", "title", "command"),
        [
            ("https://example.org/wiki/Alan_Turing", "Alan Turing", "{}"),
            ("https://example.org/w?title=A_b&x=1", "A b", "'{}'"),
            ("https://example.org/it's", "it's", """'https://example.org/it'"'"'s'"""),
            ("https://example.org/", None, "{}"),
        ],
    )
    def test_a_missing_page_offers_a_search_and_the_command_that_adds_it(
        self, mirror, url, title, command
    ):
        page = unescape(sent(mirror.get("/" + url.replace("://", "/"))))
        assert f"<code>crawlctl add {command.format(url)}</code>" in page
        assert ("Search for" in page) == (title is not None)
        assert title is None or f"Search for “{title}”" in page

    def test_a_page_not_yet_visited(self, mirror):
        mirror.page(URL)
        reply = mirror.get(PATH)
        assert (reply.status, "has not been visited yet" in sent(reply)) == (404, True)

    def test_a_page_that_only_failed(self, mirror):
        mirror.visited(mirror.page(URL), Outcome.FAILED, failure="timeout")
        reply = mirror.get(PATH)
        assert (reply.status, "): failed" in sent(reply)) == (404, True)

    def test_a_gone_page_is_shown_and_marked(self, mirror):
        page_id = mirror.page(URL, "<p>text")
        mirror.visited(page_id, Outcome.GONE, at=NOW + DAY_S, state=PageState.GONE)
        reply = mirror.get(PATH)
        assert reply.status == 200
        assert "the original is gone" in sent(reply)

    def test_a_page_not_found_by_the_last_visit_is_marked_before_it_is_retired(self, mirror):
        page_id = mirror.page(URL, "<p>text")
        before = mirror.get(PATH)
        assert "was not found" not in sent(before)
        mirror.visited(page_id, Outcome.GONE, at=NOW + DAY_S, state=PageState.VISITED)
        reply = mirror.get(PATH)
        assert (reply.status, "the original was not found" in sent(reply)) == (200, True)
        assert "was not found" not in sent(mirror.get(f"/@{NOW:.0f}{PATH}"))
        tags = [dict(each.headers)[b"etag"] for each in (before, reply)]
        assert tags[0] != tags[1]
        mirror.visited(page_id, Outcome.UNCHANGED, at=NOW + 2 * DAY_S, state=PageState.VISITED)
        assert "was not found" not in sent(mirror.get(PATH))

    @pytest.mark.parametrize("kind", ["deletion", "move"])
    def test_a_page_that_its_wiki_reports_as_removed_is_marked_before_any_visit(self, mirror, kind):
        mirror.page("https://example.org/b", "b")
        mirror.page(URL, "<p>text")
        before = mirror.get(PATH)
        mirror.remove(URL, kind, NOW + 5, target_url="https://example.org/b")
        reply = mirror.get(PATH)
        done = "moved" if kind == "move" else "deleted"
        assert (reply.status, f"the original was {done}" in sent(reply)) == (200, True)
        assert 'href="/https/example.org/b"' in sent(reply)
        assert "the original was" not in sent(mirror.get(f"/@{NOW:.0f}{PATH}"))
        assert dict(before.headers)[b"etag"] != dict(reply.headers)[b"etag"]

    def test_a_site_may_withhold_removed_pages(self, mirror):
        page_id = mirror.page(URL, "<p>secret")
        mirror.changed(page_id, "<p>secret too", at=NOW + 1, kind="text/html", title="A title")
        old, new = (row.version_id for row in version.list_versions(mirror.connection, page_id))
        mirror.configure(deleted_pages="withhold")
        assert mirror.get(PATH).status == 200
        mirror.remove(URL, "deletion", NOW + 5)
        diff = f"/diff/{new}..{old}{PATH}"
        for target in (PATH, f"/@{NOW:.0f}{PATH}", f"/v{new}{PATH}", diff):
            reply = mirror.get(target)
            assert "secret" not in sent(reply), target
        assert mirror.get(PATH).status == mirror.get(diff).status == 410
        assert "was deleted" in sent(mirror.get(PATH))
        while (work := search_index.plan(mirror.connection)) is not None:
            search_index.apply(mirror.connection, work)
        assert PATH not in sent(mirror.get("/search?q=secret"))
        mirror.configure(deleted_pages="mark")
        assert PATH in sent(mirror.get("/search?q=secret"))

    def test_redirects_are_kept(self, mirror, header_of):
        mirror.page("https://example.org/b", "b")
        page_id = mirror.page(URL)
        target = "https://example.org/b"
        mirror.visited(page_id, Outcome.MOVED, redirect_url=target, detail=target)
        reply = mirror.get(PATH)
        assert (reply.status, header_of(reply, "location")) == (302, "/https/example.org/b")
        reply = mirror.get(f"/@{NOW:.0f}{PATH}")
        assert header_of(reply, "location") == f"/@{NOW:.0f}/https/example.org/b"

    def test_redirects_are_valid_for_sandboxed_images_and_fonts(self, mirror, header_of):
        reply = mirror.get("/https/EXAMPLE.org/i.png")
        assert reply.status == 301
        assert header_of(reply, "cross-origin-resource-policy") is None
        assert header_of(reply, "access-control-allow-origin") == "*"

    def test_a_redirect_out_of_the_mirror(self, mirror):
        page_id = mirror.page(URL)
        mirror.visited(page_id, Outcome.MOVED, redirect_url="https://other.org/")
        reply = mirror.get(PATH)
        assert (reply.status, 'href="https://other.org/"' in sent(reply)) == (404, True)

    @pytest.mark.parametrize(
        ("target", "path"),
        [
            ("/https/EXAMPLE.org/a", PATH),
            ("/https/example.org/x/../a", PATH),
            ("/https/example.org:443/%61", PATH),
            ("/@v3/https/EXAMPLE.org/a", f"/@v3{PATH}"),
        ],
    )
    def test_a_page_has_one_canonical_path(self, mirror, header_of, target, path):
        reply = mirror.get(target)
        assert (reply.status, header_of(reply, "location")) == (301, path)

    @pytest.mark.parametrize(
        "target",
        [
            "/https/",
            "/https",
            "/http/%00/",
            "/https/a b/",
            "/@x/https/a.org/",
            "/@/https/a.org/",
            "/@2 days ago/https/a.org/",
            "/@v99999999999999999999/https/a.org/",
            "/etc/passwd",
            "/versions",
            "/versions/x",
            "/diff/1..2",
            "/diff/x..y/https/a.org/",
            "/timegate/x",
            "/timemap/link/javascript:x",
            "/-/../x",
        ],
    )
    def test_invalid_paths_are_not_found(self, mirror, target):
        assert mirror.get(target).status == 404


class TestErrors:
    """Errors become responses and are reported."""

    class Broken:
        async def read(self, *_, **__):
            raise KeyError("a bug")

    def test_a_bug_ends_one_response(self):
        errors = []
        app = make_app(database=self.Broken(), on_error=lambda *each: errors.append(each))
        reply = trio.run(app._reply, Request("GET", "/x", {}))
        assert (reply.status, b"a bug" in reply.body) == (500, False)
        assert [(target, str(error)) for target, error in errors] == [("/x", "'a bug'")]

    def test_websockets_are_closed(self):
        sent_types = []

        async def send(message):
            sent_types.append(message["type"])

        trio.run(make_app(), {"type": "websocket"}, None, send)
        assert sent_types == ["websocket.close"]

    def test_too_many_parameters_are_dropped(self, mirror):
        assert mirror.get("/search?" + "q=x&" * 50).status == 200

    @pytest.mark.parametrize("name", ["none", "%00", "%FF", "docs%2F.."])
    def test_no_such_site(self, mirror, name):
        assert mirror.get(f"/site/{name}").status == 404


class TestPolicy:
    def test_mirrored_pages_are_sandboxed(self, mirror, header_of):
        mirror.page(URL, "<script src=x></script>")
        policy = header_of(mirror.get(PATH), "content-security-policy")
        assert "allow-scripts" in policy
        assert "allow-same-origin" not in policy
        assert "connect-src 'none'" in policy
        assert "frame-ancestors" not in policy
        reply = mirror.get(PATH, display=DisplayOptions(scripts=False))
        without_scripts = header_of(reply, "content-security-policy")
        assert "allow-scripts" not in without_scripts
        assert "allow-same-origin" in without_scripts
        assert "script-src" not in without_scripts

    def test_webrtc_is_blocked_where_scripts_run(self, mirror, header_of):
        mirror.page(URL, "x")
        allowed = header_of(mirror.get(PATH), "connection-allowlist")
        assert allowed == '(response-origin "*://*:*/*");redirects=allow;webrtc=block'
        without_scripts = mirror.get(PATH, display=DisplayOptions(scripts=False))
        assert header_of(without_scripts, "connection-allowlist") is None

    def test_generated_pages_allow_their_script_and_no_frames(self, mirror, header_of):
        mirror.page(URL, "x")
        for target in ("/", "/search?q=x", "/no", f"/versions{PATH}", f"/diff/1..1{PATH}"):
            policy = header_of(mirror.get(target), "content-security-policy")
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert f"script-src '{assets.SCRIPT_INTEGRITY}';" in policy

    def test_the_page_for_a_missing_page_may_be_framed(self, mirror, header_of):
        policy = header_of(mirror.get("/https/no.org/"), "content-security-policy")
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors" not in policy

    def test_cookies_and_headers_of_the_original_are_not_sent(self, mirror, header_of):
        lines = ((b"Set-Cookie", b"a=b"), (b"Refresh", b"0;url=//evil"), (b"Link", b"<x>"))
        mirror.page(URL, "x", lines=lines)
        reply = mirror.get(PATH)
        assert header_of(reply, "set-cookie") is None
        assert header_of(reply, "refresh") is None


class TestTime:
    @pytest.fixture
    def history(self, mirror):
        for number in range(3):
            mirror.page(URL, f'<body>text {number} <a href="a">', at=NOW + number * DAY_S)
        return mirror

    @pytest.mark.parametrize(("days", "text"), [(0, 0), (0.5, 0), (1, 1), (2.5, 2)])
    def test_a_page_at_a_time(self, history, days, text):
        selector = f"@{NOW + days * DAY_S:.0f}"
        page = sent(history.get(f"/{selector}{PATH}", now=NOW + 9 * DAY_S, display=PLAIN))
        assert page == f'<body>text {text} <a href="/{selector}/https/example.org/a">'

    def test_requisites_of_an_old_version(self, mirror):
        page = '<img src="i.png"><link rel=stylesheet href=s.css><a href="b">'
        mirror.page(URL, page, at=NOW + 0.5)
        mirror.page("https://example.org/i.png", b"\x89PNG", kind="image/png", at=NOW + 60)
        mirror.page("https://example.org/s.css", "a{b:url(i.png)}", kind="text/css", at=NOW + 70)
        mirror.page("https://example.org/b", "<p>came later", at=NOW + 80)
        mirror.page("https://example.org/i.png", b"\x89new", kind="image/png", at=NOW + DAY_S)
        mirror.page(URL, "<p>new", at=NOW + DAY_S)
        then = "@2026-05-28T20:26:41Z"
        assert sent(mirror.get(f"/@v1{PATH}", display=PLAIN)) == (
            f'<img src="/{then}/https/example.org/i.png"><link rel=stylesheet'
            f' href="/{then}/https/example.org/s.css"><a href="/{then}/https/example.org/b">'
        )
        assert mirror.get(f"/{then}{PATH}", display=PLAIN).status == 200
        assert mirror.get(f"/{then}/https/example.org/i.png").body == b"\x89PNG"
        css = sent(mirror.get(f"/{then}/https/example.org/s.css"))
        assert css == f"a{{b:url(/{then}/https/example.org/i.png)}}"
        assert mirror.get(f"/{then}/https/example.org/b").status == 404

    def test_a_redirect_keeps_the_selected_time(self, mirror, header_of):
        mirror.page("https://example.org/b", "b")
        page_id = mirror.page(URL)
        target = "https://example.org/b"
        mirror.visited(page_id, Outcome.MOVED, redirect_url=target, detail=target)
        reply = mirror.get(f"/@2026-05-28T20:26:41Z{PATH}")
        assert header_of(reply, "location") == "/@2026-05-28T20:26:41Z/https/example.org/b"

    def test_only_fixed_versions_have_a_memento_datetime(self, history, header_of):
        reply = history.get(PATH)
        assert header_of(reply, "memento-datetime") is None
        assert f'</@v3{PATH}>; rel="memento"; datetime="' in header_of(reply, "link")

    def test_iso_time(self, history):
        assert "text 1" in sent(history.get(f"/@2026-05-30T00:00{PATH}"))

    def test_before_the_first_copy(self, history):
        reply = history.get(f"/@2020-01-01{PATH}")
        assert reply.status == 404
        assert "The oldest is from 2026-05-28" in sent(reply)

    def test_a_version_by_its_id(self, history):
        assert "text 1" in sent(history.get(f"/@v2{PATH}"))
        history.page("https://example.org/b", "b")
        assert history.get(f"/@v4{PATH}").status == 404

    def test_list_and_difference(self, history):
        listed = sent(history.get(f"/versions{PATH}"))
        assert f"/@v3{PATH}" in listed
        assert f"/diff/2..3{PATH}" in listed
        shown = sent(history.get(f"/diff/2..3{PATH}"))
        assert "<del>1</del><ins>2</ins>" in shown

    def test_a_difference_is_escaped(self, mirror):
        mirror.page(URL, "<p>old &lt;script&gt;", at=NOW)
        mirror.page(URL, "<p>new &lt;script&gt;", at=NOW + 1)
        shown = sent(mirror.get(f"/diff/1..2{PATH}"))
        assert "<script>" not in shown
        assert "&lt;script&gt;" in shown

    def test_memento_by_date(self, history, header_of):
        reply = history.get(PATH, accept_datetime="Fri, 29 May 2026 21:00:00 GMT")
        assert (reply.status, header_of(reply, "location")) == (302, f"/@v2{PATH}")
        reply = history.get(f"/@v2{PATH}")
        assert header_of(reply, "memento-datetime") == "Fri, 29 May 2026 20:26:40 GMT"
        reply = history.get(f"/timegate/{URL}")
        assert header_of(reply, "location") == f"/@v3{PATH}"
        reply = history.get(f"/timegate/{URL}", accept_datetime="Mon, 01 Jan 2001 00:00:00 GMT")
        assert header_of(reply, "location") == f"/@v1{PATH}"
        assert history.get(f"/timegate/{URL}", accept_datetime="x").status == 400

    def test_time_map(self, history):
        lines = sent(history.get(f"/timemap/link/{URL}")).split(",\n")
        assert lines[0] == f'<{URL}>; rel="original"'
        assert [line.partition("rel=")[2].partition(";")[0] for line in lines[3:]] == [
            '"first memento"',
            '"memento"',
            '"last memento"\n'.strip(),
        ]
        assert lines[3].startswith(f"<http://m.test/@v1{PATH}>")


class TestConditions:
    def test_a_cached_page_gets_304(self, mirror, header_of):
        mirror.page(URL, "x")
        etag = header_of(mirror.get(PATH), "etag")
        reply = mirror.get(PATH, if_none_match=f'"y", W/{etag}')
        assert (reply.status, reply.body) == (304, b"")
        mirror.page(URL, "y", at=NOW + 1)
        assert mirror.get(PATH, if_none_match=etag).status == 200

    @pytest.mark.parametrize(
        ("value", "status", "body", "content_range"),
        [
            ("bytes=0-1", 206, b"01", "bytes 0-1/10"),
            ("bytes=8-", 206, b"89", "bytes 8-9/10"),
            ("bytes=-3", 206, b"789", "bytes 7-9/10"),
            ("bytes=5-99", 206, b"56789", "bytes 5-9/10"),
            ("bytes=10-", 416, b"", "bytes */10"),
            ("bytes=3-2", 200, b"0123456789", None),
            ("bytes=0-1,3-4", 200, b"0123456789", None),
            ("bytes=-", 200, b"0123456789", None),
        ],
    )
    def test_ranges(self, mirror, header_of, value, status, body, content_range):
        mirror.page(URL, b"0123456789", kind="application/pdf")
        reply = mirror.get(PATH, range=value)
        assert (reply.status, reply.body) == (status, body)
        assert header_of(reply, "content-range") == content_range

    def test_a_range_of_another_version_gets_the_whole_body(self, mirror):
        mirror.page(URL, b"0123456789", kind="application/pdf")
        assert mirror.get(PATH, range="bytes=0-1", if_range='"old"').status == 200


class TestSearch:
    def index(self, mirror):
        while (work := search_index.plan(mirror.connection)) is not None:
            search_index.apply(mirror.connection, work)

    def test_results_are_marked_and_escaped(self, mirror):
        mirror.page(URL, "<p>apples &lt;b&gt; and pears", title="Fruit <i>")
        mirror.page("https://example.org/b", "<p>stones", title="Minerals")
        self.index(mirror)
        page = sent(mirror.get("/search?q=APPLES+pears"))
        assert f'<a href="{PATH}">Fruit &lt;i&gt;</a>' in page
        assert "<mark>apples</mark> &lt;b&gt; and <mark>pears</mark>" in page
        assert "Minerals" not in page

    def test_hits_are_counted_and_filtered_by_site(self, mirror, monkeypatch):
        site.upsert(mirror.connection, "b&b", "{}", source="config", at=NOW)
        for k in range(12):
            mirror.page(f"{URL}{k}", "<p>fruit", title=f"Page {k} - Wiki")
        other = Discovery.of("https://other.example/x", site_id=2, at=NOW)
        [found] = frontier.discover(mirror.connection, [other])
        mirror.changed(found.page_id, "<p>fruit", at=NOW, kind="text/html", title="Other")
        search_index.apply(mirror.connection, search_index.plan(mirror.connection))
        page = sent(mirror.get("/search?q=fruit"))
        assert ">13 pages</p>" in page
        assert '<a class="chip" href="/search?q=fruit&amp;site=docs">docs 12</a>' in page
        assert "start=10" in page
        assert " - Wiki</a>" not in page
        filtered = sent(mirror.get("/search?q=fruit&site=b%26b"))
        assert ">1 page of b&amp;b</p>" in filtered
        assert 'site=b%26b" aria-current="true">b&amp;b 1<' in filtered
        assert ">Other</a>" in filtered
        assert "Page 1" not in filtered
        assert "No results in none" in sent(mirror.get("/search?q=fruit&site=none"))
        monkeypatch.setattr(search_index, "MAX_COUNTED", 5)
        assert "More than 5 pages" in sent(mirror.get("/search?q=fruit"))

    def test_copies_that_are_not_indexed_are_counted(self, mirror):
        mirror.page(URL, "<p>apples")
        page = sent(mirror.get("/search?q=apples"))
        assert "1 copy is not indexed yet" in page

    @pytest.mark.parametrize("query", ['"', "%22%22*", "AND", "NEAR(", "-x", "a:b^", "%00", "*"])
    def test_any_query_is_valid(self, mirror, query):
        assert mirror.get(f"/search?q={query}").status == 200


class TestLists:
    def test_robots_txt_disallows_everything(self, mirror):
        assert sent(mirror.get("/robots.txt")) == "User-agent: *\nDisallow: /\n"
