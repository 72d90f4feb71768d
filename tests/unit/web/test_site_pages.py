"""The front page, lists of sites, suggestions and a random page."""

import json

import pytest

from crawld.store.frontier import site
from crawld.web import assets, site_pages
from crawld.web.look import Look, shown_as, shown_look
from tests.unit.web.conftest import DAY_S, NOW, PATH, URL, sent

HOSTILE = '"><script>alert(1)</script>&'


def test_an_empty_mirror_says_so(mirror):
    page = sent(mirror.get("/"))
    assert "Nothing is mirrored yet" in page
    assert "Mirror of docs" in page
    assert mirror.get("/random").status == 404


def test_the_front_page_has_name_size_and_sites(mirror):
    mirror.page(URL, "x", at=NOW - 120)
    page = sent(mirror.get("/", now=NOW))
    assert "<h1>Mirror of docs</h1>" in page
    assert "1 page of 1 site" in page
    assert ">2 min 00 s ago</time>" in page
    assert '<a href="/site/docs">docs</a>' in page


def test_a_mirror_has_the_title_of_its_config(mirror):
    with shown_as(Look(HOSTILE, (("/changes", "Changes"),))):
        page = sent(mirror.get("/"))
    assert shown_look() == Look()
    assert "<script>alert" not in page
    assert "Mirror of" in page  # the application has a look of its own


def test_many_sites_are_listed_in_parts(mirror, monkeypatch):
    monkeypatch.setattr(site_pages, "SITES_PER_LIST", 2)
    for name in ("b", "c", "d"):
        site.upsert(mirror.connection, name, "{}", source="config", at=NOW)
    first = sent(mirror.get("/"))
    assert "Mirror of docs, b, c and 1 more" in first
    assert '"/site/c"' not in first
    second = sent(mirror.get("/?after=2"))
    assert '"/site/d"' in second
    assert 'rel="next"' in first
    assert 'rel="next"' not in second


def test_a_site_lists_its_pages_by_title(mirror, monkeypatch):
    monkeypatch.setattr(site_pages, "PAGES_PER_LIST", 2)
    for k, title in enumerate(["Pear", "Apple", HOSTILE, "Fig"]):
        mirror.page(f"{URL}{k}", "x", title=title)
    first = sent(mirror.get("/site/docs"))
    assert "4 pages" in first
    assert "<script>alert" not in first
    assert "&lt;script&gt;" in first
    assert first.index(">Apple</a>") > first.index("&lt;script&gt;")
    target = first.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    second = sent(mirror.get(f"/site/docs{target}"))
    assert second.index(">Pear</a>") > second.index(">Fig</a>")
    assert ">Apple</a>" not in second
    filtered = sent(mirror.get("/site/docs?begins=fi"))
    assert "1 title begins" in filtered
    assert ">Pear</a>" not in filtered


def test_the_last_part_of_a_list(mirror):
    mirror.page(URL, "x", title="<Title>")
    assert f'<a href="{PATH}">&lt;Title&gt;</a>' in sent(mirror.get("/site/docs"))
    assert "No more pages" in sent(mirror.get("/site/docs?after=z&id=1"))


def test_a_site_without_copies_says_what_fills_it(mirror):
    assert "The crawl adds them" in sent(mirror.get("/site/docs"))


@pytest.mark.parametrize("query", ["begins=%00", "begins=%FF%ED%A0%80", "after=x&id=9" + "9" * 30])
def test_any_query_of_a_list_is_answered(mirror, query):
    mirror.page(URL, "x")
    assert mirror.get(f"/site/docs?{query}").status == 200
    assert mirror.get(f"/-/suggest?{query.replace('begins', 'q')}").status == 200


def test_suggestions(mirror, header_of):
    mirror.page(URL, "x", title=HOSTILE)
    mirror.page(URL + "b", "x", title="Fig")
    reply = mirror.get("/-/suggest?q=FI")
    assert header_of(reply, "content-type") == "application/json"
    assert json.loads(reply.body) == [
        {"title": "Fig", "place": "example.org", "path": "/https/example.org/ab"}
    ]
    assert json.loads(mirror.get("/-/suggest?q=%22").body)[0]["title"] == HOSTILE
    assert json.loads(mirror.get("/-/suggest").body) == []


def test_a_random_page(mirror, header_of):
    mirror.page(URL, "x", at=NOW - DAY_S)
    reply = mirror.get("/random")
    assert (reply.status, header_of(reply, "location")) == (302, PATH)
    assert header_of(reply, "cache-control") == "no-store"


def test_pages_name_the_script_whose_digest_their_policy_allows(mirror, header_of):
    page = mirror.get("/")
    path = sent(page).partition('<script defer src="')[2].partition('"')[0]
    script = mirror.get(path)
    assert script.body == assets.SCRIPT
    assert header_of(script, "content-type") == "text/javascript"
    assert f'integrity="{assets.SCRIPT_INTEGRITY}"' in sent(page)
    assert f"'{assets.SCRIPT_INTEGRITY}'" in header_of(page, "content-security-policy")
