"""Feeds found in the wild: new entries, wrong dates, and other documents."""

from pathlib import Path

import pytest

from crawld.core.content.xml_scan import MAX_ATTRIBUTES, attributes
from crawld.sources.feed import MAX_ENTRIES, FeedError, FeedWindow, read_feed
from crawld.sources.listed_page import ListedPage, TimeSpan, read_date
from tests.unit.steps import count_steps

DATA = Path(__file__).parents[2] / "data" / "sources"
URL = "http://a.test/news/feed.xml"
NOW = 1_795_262_400.0  # 2026-11-21T12:00:00Z


def item(link, at=None, guid=None):
    date = f"<pubDate>{at}</pubDate>" if at else ""
    named = f"<guid isPermaLink='false'>{guid}</guid>" if guid else ""
    return f"<item><link>{link}</link>{date}{named}</item>"


def rss(*items, more=""):
    return (
        f"<?xml version='1.0'?><rss version='2.0'><channel>{more}{''.join(items)}</channel></rss>"
    )


def read(text):
    return read_feed(text.encode() if isinstance(text, str) else text, URL)


def urls(feed):
    return [entry.url for entry in feed.entries.values()]


def test_rss():
    feed = read(rss(item("/p?a=1&amp;b=2", "Sat, 21 Nov 2026 11:00:00 GMT"), more="<ttl>30</ttl>"))
    changed = read_date("2026-11-21T11:00:00Z")
    assert list(feed.entries.values()) == [ListedPage("http://a.test/p?a=1&b=2", changed)]
    assert (feed.junk, feed.ttl_s) == (0, 1_800.0)


def test_atom_uses_the_latest_date():
    text = """<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>tag:1</id>
      <link href="http://a.test/x"/><published>2026-11-01T00:00:00Z</published>
      <updated>2026-11-21T12:30:00+01:00</updated></entry></feed>"""
    (entry,) = read(text).entries.values()
    assert entry == ListedPage("http://a.test/x", read_date("2026-11-21T11:30:00Z"))


@pytest.mark.parametrize("name", ["mediawiki_rc.atom", "mediawiki_rc.rss"])
def test_links_to_differences_are_mapped_to_pages(name):
    feed = read((DATA / name).read_bytes())
    wiki = "http://wiki.test/wiki/"
    pages = ["Main_Page", "New_page", "Newer_page", "Main_Page", "Main_Page"]
    assert urls(feed) == [wiki + page for page in pages]
    news = FeedWindow().new_entries(feed, 1_795_298_200.0, None)
    assert [entry.url for entry in news] == [wiki + page for page in pages[:3]]
    assert news[0].changed == read_date("2026-11-21T21:55:29Z")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<!DOCTYPE html><html><body><p>Not found</body></html>", "HTML"),
        ("<html><head></head></html>", "HTML"),
        ("", "neither"),
        ("not found", "neither"),
        ("<?xml version='1.0'?><urlset/>", "neither"),
        ("\0\1\2" * 1_000, "neither"),
    ],
)
def test_other_documents_are_refused(text, why):
    with pytest.raises(FeedError, match=why):
        read(text)


def test_entities_are_not_expanded():
    bomb = "".join(
        f"<!ENTITY {name} '{'&' + before + ';'}{('&' + before + ';') * 9}'>"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    doctype = f"<?xml version='1.0'?><!DOCTYPE rss [<!ENTITY a 'ha'>{bomb}]>"
    channel = rss(item("http://a.test/x"), more="<title>&i;</title>").partition("?>")[2]
    assert urls(read(doctype + channel)) == ["http://a.test/x"]


def test_a_broken_feed_is_read_as_far_as_possible():
    whole = rss(item("http://a.test/1"), item("http://a.test/2"))
    assert urls(read(whole.partition("</channel>")[0])) == ["http://a.test/1", "http://a.test/2"]


ITEM = "<item><link>http://a.test/1</link></item>"


@pytest.mark.parametrize(
    "items",
    [
        "<item><title>Fish & chips &nbsp; &foo; < 5</title><link>http://a.test/1</link></item>",
        "<item><description>a<br>b<p>c<img src='x'></description><link>http://a.test/1</link></item>",
        "<item><title>x</b></i></title><link>http://a.test/1</item>",
        "<item><link>http://a.test/1</link><item><link>http://a.test/1</link></item>",
        "<item><link><![CDATA[http://a.test/1]]></link></item>",
        "<item><guid>http://a.test/1</guid></item>",
        "<item><guid isPermaLink='false'>7</guid><link> http://a.test/1 </link></item>",
        "<item><source url='x'><link>http://b.test/</link></source><link>http://a.test/1</link></item>",
        "<item><title a='>' b=\">\">x</title><link>http://a.test/1</link></item>",
        "<ITEM><LINK>http://a.test/1</LINK></ITEM>",
        "<item><link/>x<link>http://a.test/1</link></item>",
        "<item><atom:link rel='self' href='http://b.test/'/><link>http://a.test/1</link></item>",
        "<entry><link rel='alternate' href='http://a.test/1'/></entry>",
        "<item><!-- <link>http://b.test/</link> --><link>http://a.test/1</link></item>",
        "<image><link>http://b.test/</link></image>" + ITEM,
        "<item><content><svg><link>http://b.test/</link></svg></content><guid>/1</guid></item>",
        "<item><link>http://a.test/1",
    ],
)
def test_feeds_that_are_not_well_formed_are_read(items):
    assert set(urls(read(rss(items)))) == {"http://a.test/1"}


def test_rdf():
    text = """<rdf:RDF xmlns="http://purl.org/rss/1.0/"><channel rdf:about="x">
      <link>http://a.test/</link><items><rdf:Seq><rdf:li rdf:resource="y"/></rdf:Seq></items>
      </channel><item rdf:about="http://a.test/x"><link>http://a.test/x</link>
      <dc:date>2026-11-21T11:00:00Z</dc:date></item></rdf:RDF>"""
    (entry,) = read(text).entries.values()
    assert entry == ListedPage("http://a.test/x", read_date("2026-11-21T11:00:00Z"))


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "utf-16", "windows-1251"])
def test_the_declared_charset_is_used(charset):
    letter = "ж" if charset == "windows-1251" else "é"
    text = rss(item(f"http://a.test/{letter}"))
    declared = text.replace("<?xml version='1.0'?>", f"<?xml version='1.0' encoding='{charset}'?>")
    assert urls(read(declared.encode(charset))) == urls(read(text))


def test_a_link_with_many_parameters_is_no_difference():
    home = "<link>http://a.test/wiki/Special:X</link>"
    link = "http://a.test/index.php?" + "title=a&amp;diff=1&amp;" * 50
    assert len(urls(read(rss(item(link), more=home)))) == 1


@pytest.mark.parametrize("charset", ["idna", "punycode", "zlib_codec", "unicode_escape", "utf-7"])
def test_codecs_that_are_no_charset_are_not_used(charset):
    text = f"<?xml version='1.0' encoding='{charset}'?>" + rss(ITEM).partition("?>")[2]
    assert urls(read(text)) == ["http://a.test/1"]


HOSTILE = {
    "open elements": "<a>",
    "open items": "<item>",
    "open sources": "<item><source>",
    "closed elements": "</a>",
    "attributes": '<item a="x"',
    "attributes of one tag": ' a="x" b',
    "namespaces": "<x xmlns:a='b'>",
    "bases": "<x xml:base='a/'>",
    "categories": "<category>a</category>",
    "quotes": '<a b="',
    "brackets": "<",
    "closing brackets": ">",
    "declarations": "<!DOCTYPE a [<!ENTITY a 'b'>",
    "sections": "<![CDATA[",
    "whole sections": "<link><![CDATA[]]>",
    "comments": "<!--",
    "whole comments": "<!---->",
    "instructions": "<?",
    "ampersands": "&",
    "entities": "&lt;&#1;&#x1",
    "links": "<link href='http://a.test/'/>",
    "dates": "<pubDate>Sat, 21 Nov 2026 11:00:00 GMT</pubDate>",
    "crossed": "<a><b></a></b>",
    "blanks": "<a " + " " * 50,
    "equals": "<a = = =",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("within", ["", "<item>", "<item><link>", "<item "])
def test_the_work_is_linear(name, within):
    few, many = (rss(within + HOSTILE[name] * count) for count in (400, 800))
    assert count_steps(read, many) < 2.3 * count_steps(read, few) + 2_000


def test_the_number_of_tags_is_limited():
    text = rss(ITEM).replace("</channel></rss>", "<a>" * 1_000_000 + ITEM.replace("1", "2"))
    assert urls(read(text)) == ["http://a.test/1"]


def test_entries_without_a_page_are_counted():
    untitled = "<item><title>t</title></item>"
    feed = read(rss(item("mailto:a@a.test"), item("http://a.test/1"), untitled))
    assert (urls(feed), feed.junk) == (["http://a.test/1"], 2)


def test_the_number_of_entries_is_limited():
    feed = read(rss(*(item(f"http://a.test/{i}") for i in range(MAX_ENTRIES + 50))))
    assert len(feed.entries) == MAX_ENTRIES


# --- between two reads ---------------------------------------------------------------------------


def reads(*texts, window=None):
    """Return the new entries of each read, an hour apart, and the window after them."""
    window, at, news = window or FeedWindow(), None, []
    for position, text in enumerate(texts):
        now = NOW + 3_600.0 * position
        news.append({entry.url: entry.changed for entry in window.new_entries(read(text), now, at)})
        at = now
    return news, window


DATED = "Sat, 21 Nov 2026 11:00:00 GMT"
ELEVEN = read_date("2026-11-21T11:00:00Z")


def test_an_entry_counts_once():
    one = item("http://a.test/1", DATED)
    two = item("http://a.test/2", DATED)
    news, window = reads(rss(one), rss(two, one), rss(two, one))
    assert news == [{"http://a.test/1": ELEVEN}, {"http://a.test/2": ELEVEN}, {}]
    assert not window.gap


def test_an_entry_with_another_date_counts_again():
    same = item("http://a.test/2", DATED)
    again = item("http://a.test/1", "Sat, 21 Nov 2026 12:30:00 GMT")
    news, _ = reads(rss(item("http://a.test/1", DATED), same), rss(again, same))
    assert news[1] == {"http://a.test/1": read_date("2026-11-21T12:30:00Z")}


def test_the_window_survives_a_restart():
    one = rss(item("http://a.test/1", DATED))
    _, window = reads(one)
    again = FeedWindow(window.keys)
    assert again.new_entries(read(one), NOW + 60.0, NOW) == []


@pytest.mark.parametrize("date", [None, "Sat, 28 Nov 2026 11:00:00 GMT", "yesterday", "1 Jan 0001"])
def test_an_entry_without_a_valid_date_changed_since_the_last_read(date):
    news, _ = reads(rss(item("http://a.test/1", DATED)), rss(item("http://a.test/2", date)))
    assert news[1] == {"http://a.test/2": TimeSpan(NOW, NOW + 3_600.0)}


def test_on_the_first_read_only_dates_count():
    news, _ = reads(rss(item("http://a.test/1"), item("http://a.test/2", DATED)))
    assert news == [{"http://a.test/1": None, "http://a.test/2": ELEVEN}]


def test_a_window_of_only_new_entries_is_a_gap():
    feeds = [
        rss(item(f"http://a.test/{i}", DATED), item(f"http://a.test/{i + 1}", DATED))
        for i in range(9)
    ]
    _, window = reads(feeds[0], feeds[1])
    assert not window.gap
    _, window = reads(feeds[5], window=window)
    assert window.gap
    _, window = reads(rss(), window=window)
    assert not window.gap


def test_an_apostrophe_in_a_tag_hides_no_other_tag():
    found = read(
        rss("<item><title don't>x</title><link>http://a.test/1</link><i>it's > so</i></item>")
    )
    assert urls(found) == ["http://a.test/1"]


def test_attributes_of_a_tag_are_capped():
    assert len(attributes("".join(f' a{n}="x"' for n in range(1_000)))) == MAX_ATTRIBUTES
