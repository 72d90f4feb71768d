"""The page of changes, and the feeds, by the rules of RFC 4287 and JSON Feed 1.1."""

import json
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
import trio

from crawld.core.page import Grace, Outcome
from crawld.store.engine.database import Database
from crawld.store.mirror import events
from crawld.store.versions import purge, search_index
from crawld.web import change_excerpt, feeds
from crawld.web.reply import Postponed, Reply, Request
from tests.unit.web.conftest import NOW, URL, make_app, sent

ATOM = "{http://www.w3.org/2005/Atom}"
BASE = "http://m.test"
OTHER = "https://example.org/b"
HOSTILE = "<script>alert(1)</script>&\x0b\ufffe\U0001f600]]>\x00"


@pytest.fixture
def edited(mirror):
    """A page with an edit, one that moved, one that is gone."""
    mirror.page(URL, "<p>The old text stays here.</p>", title="First")
    page_id = mirror.page(URL)
    mirror.changed(
        page_id, "<p>The new text stays here.</p>", at=NOW + 10, kind="text/html", title="First"
    )
    mirror.page(OTHER, "<p>b</p>", at=NOW + 20, title="Second")
    mirror.remove(OTHER, "move", NOW + 30, target_url="https://example.org/c?d=<e>&f")
    gone = mirror.page("https://example.org/g", "<p>g</p>", at=NOW + 40, title=HOSTILE)
    mirror.visited(gone, Outcome.GONE, at=NOW + 50, grace=Grace(1, NOW + 50))
    return mirror


def feed(mirror, target, **lines):
    """Return a feed as made apart."""
    app = make_app(now=NOW + 100)
    reply = app._route(mirror.connection, Request("GET", target, {"base": BASE, **lines}))
    assert isinstance(reply, Reply)
    return reply


def check_atom(body):
    """Check a document by RFC 4287, section 4; return it."""
    root = ElementTree.fromstring(body)
    assert root.tag == f"{ATOM}feed"
    check_atom_element(root, entry=False)
    ids = [entry.find(f"{ATOM}id").text for entry in root.iter(f"{ATOM}entry")]
    assert len(ids) == len(set(ids))
    for entry in root.iter(f"{ATOM}entry"):
        check_atom_element(entry, entry=True)
        [content] = entry.findall(f"{ATOM}content")
        assert content.get("type") == "html"
        assert not len(content)
    return root


ALLOWED = {
    False: ["id", "title", "updated", "author", "generator", "link", "entry"],
    True: ["id", "title", "published", "updated", "link", "category", "content"],
}


def check_atom_element(element, *, entry):
    names = [each.tag.removeprefix(ATOM) for each in element]
    assert set(names) <= set(ALLOWED[entry])
    for name in ("id", "title", "updated"):
        assert names.count(name) == 1
        assert element.find(ATOM + name).text.strip()
    if not entry:
        assert element.find(f"{ATOM}author/{ATOM}name").text
    assert urlsplit(element.find(f"{ATOM}id").text).scheme == "urn"
    for name in ("updated", "published"):
        for each in element.findall(ATOM + name):
            datetime.strptime(each.text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    links = element.findall(f"{ATOM}link")
    kinds = [(each.get("rel"), each.get("type")) for each in links]
    assert len(kinds) == len(set(kinds))
    assert "alternate" in dict(kinds)
    assert entry or "self" in dict(kinds)
    for each in links:
        assert urlsplit(each.get("href")).scheme in ("http", "https")
        assert set(each.attrib) <= {"rel", "href", "type", "title"}
    for each in element.findall(f"{ATOM}category"):
        assert each.get("term")


def check_json(body):
    """Check a document by JSON Feed 1.1; return it."""
    document = json.loads(body)
    assert document["version"] == "https://jsonfeed.org/version/1.1"
    assert {"title", "home_page_url", "feed_url", "items"} <= document.keys()
    for item in document["items"]:
        assert {"id", "url", "content_html", "date_published", "tags"} <= item.keys()
        assert all(isinstance(each, str) for each in (item["id"], item["title"], *item["tags"]))
        datetime.fromisoformat(item["date_published"])
        assert all(name.startswith("_") for name in item if name not in JSON_ITEM)
    ids = [item["id"] for item in document["items"]]
    assert len(ids) == len(set(ids))
    return document


JSON_ITEM = {
    *("id", "url", "external_url", "title", "content_html", "tags"),
    *("date_published", "date_modified"),
}


def links_of(element):
    return {each.get("rel"): each.get("href") for each in element.findall(f"{ATOM}link")}


def test_an_atom_feed_shows_each_change_with_its_difference(edited):
    reply = feed(edited, "/changes.atom")
    root = check_atom(reply.body)
    entries = root.findall(f"{ATOM}entry")
    kinds = [each.find(f"{ATOM}category").get("term") for each in entries]
    assert kinds == ["gone", "new", "moved", "new", "changed", "new"]
    edit = entries[4]
    mirror_id = events.mirror_id(edited.connection)
    assert edit.find(f"{ATOM}id").text.startswith(f"urn:crawld:{mirror_id}:")
    assert edit.find(f"{ATOM}title").text == "Changed: First"
    content = edit.find(f"{ATOM}content").text
    assert "The <del>old</del><ins>new</ins> text stays here." in content
    links = links_of(edit)
    assert links["alternate"] == f"{BASE}/https/example.org/a"
    assert links["via"] == URL
    assert links["related"] == f"{BASE}/diff/1..2/https/example.org/a"
    assert "to <a href=" in entries[2].find(f"{ATOM}content").text
    assert root.find(f"{ATOM}updated").text == edit_time(NOW + 50)


def edit_time(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_json_feed_shows_the_same(edited):
    reply = feed(edited, "/changes.json")
    document = check_json(reply.body)
    items = document["items"]
    root = check_atom(feed(edited, "/changes.atom").body)
    assert [item["id"] for item in items] == [
        each.text for each in root.findall(f".//{ATOM}entry/{ATOM}id")
    ]
    assert items[4]["_crawld"]["kind"] == "changed"
    assert items[4]["_crawld"]["difference_url"] == f"{BASE}/diff/1..2/https/example.org/a"
    assert "<ins>new</ins>" in items[4]["content_html"]
    assert items[2]["_crawld"]["target_url"] == "https://example.org/c?d=<e>&f"


def test_hostile_titles_and_texts_are_escaped_everywhere(edited):
    page_id = edited.page("https://example.org/h?a=<b>&c", f"<p>{'x' * 40}</p>", title=HOSTILE)
    edited.changed(
        page_id,
        "<p>&lt;img src=x onerror=1&gt;\x0b</p>",
        at=NOW + 60,
        kind="text/html",
        title=HOSTILE,
    )
    atom = feed(edited, "/changes.atom")
    assert b"<script" not in atom.body
    assert not set(range(32)) - {9, 10, 13} & set(atom.body)
    [entry, *_] = check_atom(atom.body).findall(f"{ATOM}entry")
    content = entry.find(f"{ATOM}content").text
    assert "&lt;img" in content
    assert "<img" not in content
    document = check_json(feed(edited, "/changes.json").body)
    assert "<img" not in document["items"][0]["content_html"]
    page = sent(edited.get("/changes"))
    assert "<script>alert" not in page
    assert "a=<b>" not in page


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("site=docs", ["gone", "new", "moved", "new", "changed", "new"]),
        ("site=none", []),
        ("kind=changed,moved", ["moved", "changed"]),
        ("url=https://example.org/a", ["changed", "new"]),
        ("url=example.org/none", []),
        ("q=stays", ["changed", "new"]),
        ("q=nowhere", []),
    ],
)
def test_feeds_and_the_page_are_filtered(edited, query, kinds):
    while (work := search_index.plan(edited.connection)) is not None:
        search_index.apply(edited.connection, work)
    root = check_atom(feed(edited, f"/changes.atom?{query}").body)
    terms = [each.find(f"{ATOM}category").get("term") for each in root.findall(f"{ATOM}entry")]
    assert terms == kinds
    document = check_json(feed(edited, f"/changes.json?{query}").body)
    assert [item["tags"][0] for item in document["items"]] == kinds
    page = sent(edited.get(f"/changes?{query}"))
    assert page.count('<span class="chip ') == len(kinds)
    all_id = check_atom(feed(edited, "/changes.atom").body).find(f"{ATOM}id").text
    assert root.find(f"{ATOM}id").text != all_id


@pytest.mark.parametrize("query", ["kind=other", "size=many", "size=nan", "size=101", "url=a b:c"])
def test_a_filter_that_means_nothing_is_refused(edited, query):
    for path in ("/changes", "/changes.atom", "/changes.json"):
        assert feed(edited, f"{path}?{query}").status == 400


def test_a_feed_has_pages(mirror, monkeypatch):
    monkeypatch.setattr(feeds, "ENTRIES", 4)
    for number in range(10):
        mirror.page(f"https://example.org/{number}", f"<p>{number}</p>", at=NOW + number)
    seen, target = [], "/changes.atom?site=docs"
    while target is not None:
        root = check_atom(feed(mirror, target).body)
        seen += [each.text for each in root.findall(f"{ATOM}entry/{ATOM}id")]
        links = links_of(root)
        assert links["first"] == f"{BASE}/changes.atom?site=docs"
        target = links.get("next", "").removeprefix(BASE) or None
    assert len(seen) == len(set(seen)) == 10
    seen, target = [], "/changes.json"
    while target is not None:
        document = check_json(feed(mirror, target).body)
        seen += document["items"]
        target = document.get("next_url", "").removeprefix(BASE) or None
    assert len(seen) == 10


def test_an_empty_feed_is_valid(mirror):
    assert check_atom(feed(mirror, "/changes.atom").body).findall(f"{ATOM}entry") == []
    assert check_json(feed(mirror, "/changes.json").body)["items"] == []
    assert "The crawl fills this list" in sent(mirror.get("/changes"))
    assert "Show all changes" in sent(mirror.get("/changes?site=docs"))


def test_times_of_any_century_are_valid(mirror):
    for number, at in enumerate((-1e12, 0.0, 1e11, 1e15)):
        page_id = mirror.page(f"https://example.org/{number}")
        mirror.changed(page_id, "<p>x</p>", at=at, kind="text/html", title="t")
    check_atom(feed(mirror, "/changes.atom").body)
    assert mirror.get("/changes").status == 200


def test_a_long_difference_is_cut(mirror):
    page_id = mirror.page(URL, "".join(f"<p>old {n} {'x' * 400}</p>" for n in range(200)))
    after = "".join(f"<p>new {n} {'y' * 400}</p>" for n in range(200))
    mirror.changed(page_id, after, at=NOW + 1, kind="text/html", title="t")
    root = check_atom(feed(mirror, "/changes.atom").body)
    content = root.find(f"{ATOM}entry/{ATOM}content").text
    assert "more places" in content or "…" in content
    assert "The whole difference" in content
    assert len(content) < 2 * change_excerpt.EXCERPT_CHARACTERS


def test_large_copies_are_not_compared(edited, monkeypatch):
    monkeypatch.setattr(feeds, "MAX_DIFF_BYTES", 10)
    content = check_json(feed(edited, "/changes.json").body)["items"][4]["content_html"]
    assert "<ins>" not in content
    assert "The whole difference" in content


def test_a_burst_of_changes_is_compared_bit_by_bit(edited, monkeypatch):
    """The work for a feed is bounded; what was not compared yet comes later."""
    monkeypatch.setattr(change_excerpt, "MAX_SAVED_BYTES", 70)
    found = events.get(edited.connection, events.newest_id(edited.connection) - 4)
    excerpts = change_excerpt.Excerpts()
    excerpts._saved_bytes = 0
    assert excerpts.of(edited.connection, found, 0.0, 10**6) is None
    assert "<ins>new</ins>" in excerpts.of(edited.connection, found, 1.0, 10**6)
    # It is kept: no further work.
    excerpts._saved_bytes = 0
    assert "<ins>new</ins>" in excerpts.of(edited.connection, found, 1.0, 10**6)


def test_withheld_pages_show_no_difference(edited):
    edited.configure(deleted_pages="withhold")
    edited.remove(URL, "deletion", NOW + 70)
    items = check_json(feed(edited, "/changes.json").body)["items"]
    assert not any("<ins>" in item["content_html"] for item in items)


def test_pages_name_their_feeds(edited):
    assert 'href="/changes.atom"' in sent(edited.get("/"))
    page = sent(edited.get("/changes?kind=gone"))
    assert (
        'type="application/atom+xml" title="These changes" href="/changes.atom?kind=gone"' in page
    )
    link = "/changes.atom?url=https%3A%2F%2Fexample.org%2Fa"
    assert f'href="{link}"' in sent(edited.get("/versions/https/example.org/a"))
    [line] = [
        value for name, value in edited.get("/https/example.org/a").headers if name == b"link"
    ]
    assert f'<{link}>; rel="alternate"; type="application/atom+xml"' in line.decode()


class Served:
    """The application on a database file, with a clock."""

    def __init__(self, database, mirror):
        self.now = NOW + 100
        self.app = make_app(database=database)
        self.app._clock = self.app._feeds._clock = lambda: self.now
        self.made = 0
        made = self.app._feeds._made

        def count(*args):
            self.made += 1
            return made(*args)

        self.app._feeds._made = count
        self.mirror = mirror

    async def get(self, target, **lines):
        headers = {name.replace("_", "-"): value for name, value in lines.items()}
        request = Request("GET", target, {"base": BASE, "host": "m.test", **headers})
        return await self.app._reply(request)


@pytest.fixture
async def served(edited):
    path = edited.connection.db_filename("main")
    async with await Database.open(path, read_only=True) as database:
        served = Served(database, edited)
        served.app._hosts = make_app(hosts=["m.test"])._hosts
        yield served


async def test_a_polled_feed_is_made_once(served, header_of):
    first = await served.get("/changes.atom")
    etag = header_of(first, "etag")
    for _ in range(50):
        reply = await served.get("/changes.atom")
        assert (reply.status, reply.body) == (200, first.body)
        assert (await served.get("/changes.atom", if_none_match=etag)).status == 304
    modified = header_of(first, "last-modified")
    assert (await served.get("/changes.atom", if_modified_since=modified)).status == 304
    assert (await served.get("/changes.atom", if_modified_since="soon")).status == 200
    assert served.made == 1


async def test_a_change_is_in_the_feed_within_a_second(served, header_of):
    first = await served.get("/changes.atom")
    etag, modified = header_of(first, "etag"), header_of(first, "last-modified")
    served.mirror.page("https://example.org/later", "<p>later</p>", title="Later")
    served.now += 0.6
    later = await served.get("/changes.atom", if_none_match=etag)
    assert b"New: Later" in later.body
    # The same second, another content: a date must not hide it.
    assert header_of(later, "last-modified") != modified
    assert (await served.get("/changes.atom", if_modified_since=modified)).status == 200


async def test_a_purged_page_leaves_the_feed(served):
    assert b"Changed: First" in (await served.get("/changes.atom")).body
    purge.purge(served.mirror.connection, URL, NOW)
    served.now += feeds.MAX_KEPT_S
    assert b": First" not in (await served.get("/changes.atom")).body


async def test_readers_who_come_together_share_a_feed(served):
    bodies = []

    async def read():
        bodies.append((await served.get("/changes.json")).body)

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(read)
    assert len(bodies) == 20
    assert len(set(bodies)) == 1
    assert served.made == 1


async def test_a_reader_who_looked_before_a_feed_was_made_gets_it_too(served):
    request = Request("GET", "/changes.json", {"base": BASE, "host": "m.test"})
    app = served.app
    looked = await app._database.read(app._route, request, may_postpone=True)
    made = await served.get("/changes.json")
    render = partial(app._apart.read, app._route, request, may_postpone=False)
    assert (await app._large.reply(looked, render)).body == made.body
    assert served.made == 1


async def test_the_state_of_feeds_is_bounded(served, monkeypatch):
    monkeypatch.setattr(feeds, "FEEDS", 3)
    for number in range(9):
        await served.get(f"/changes.atom?site={number}")
    assert len(served.app._feeds._sent) == 3


def test_a_search_is_made_apart(edited):
    app = make_app()
    request = Request("GET", "/changes?q=a", {"base": BASE})
    assert isinstance(app._route(edited.connection, request, may_postpone=True), Postponed)
    request = Request("GET", "/changes", {"base": BASE})
    assert isinstance(app._route(edited.connection, request, may_postpone=True), Reply)


def test_links_begin_with_the_public_address(edited):
    app = make_app(now=NOW + 100)
    app._feeds._public_url = lambda: "https://mirror.example.org/m"
    reply = app._route(edited.connection, Request("GET", "/changes.json", {"base": BASE}))
    document = check_json(reply.body)
    assert document["feed_url"] == "https://mirror.example.org/m/changes.json"
    assert {item["url"].partition("/https")[0] for item in document["items"]} == {
        "https://mirror.example.org/m"
    }
