import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.url import canonicalize
from crawld.sources.mediawiki_title import Namespace, TitleRules

ORIGIN = "https://wiki.test"


def rules(**more):
    spaces = [
        Namespace(-2, "Media"),
        Namespace(-1, "Spezial"),
        Namespace(0, ""),
        Namespace(1, "Diskussion"),
        Namespace(4, "Wiki Wort"),
        Namespace(6, "Datei"),
        Namespace(828, "Modul", first_letter=False),
    ]
    names = {space.name.lower(): space.number for space in spaces if space.name}
    names |= {"special": -1, "talk": 1, "file": 6, "bild": 6, "project": 4, "ww": 4}
    values = {
        "article_path": "/wiki/$1",
        "script": "/w/index.php",
        "namespaces": {space.number: space for space in spaces},
        "names": names,
        "interwiki": frozenset({"wikt", "fr"}),
    }
    return TitleRules(**(values | more))


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/wiki/Main_Page", "Main Page"),
        ("/wiki/main_page", "Main page"),
        ("/wiki/C%2B%2B", "C++"),
        ("/wiki/C++", "C++"),
        ("/wiki/AC/DC", "AC/DC"),
        ("/wiki/M%C3%A1laga", "Málaga"),
        ("/wiki/M%C3%A1laga_", "Málaga"),
        ("/wiki/Ma%CC%81laga", "Málaga"),
        ("/wiki/%C3%A9cole", "École"),
        ("/wiki/%C3%9F", "ß"),
        ("/wiki/%E1%83%90%E1%83%91", "აბ"),
        ("/wiki/__A___b__", "A b"),
        ("/wiki/A%C2%A0b", "A b"),
        ("/wiki/100%25_wool", "100% wool"),
        ("/wiki/Who_goes_there%3F_(film)", "Who goes there? (film)"),
        ("/wiki/Salt_%26_pepper", "Salt & pepper"),
        ("/wiki/Ratio_3:4", "Ratio 3:4"),
        ("/wiki/:Leading", "Leading"),
        ("/wiki/talk:x", "Diskussion:X"),
        ("/wiki/TALK_:_x_y", "Diskussion:X y"),
        ("/wiki/bild:a.png", "Datei:A.png"),
        ("/wiki/project:Rules", "Wiki Wort:Rules"),
        ("/wiki/Wiki_Wort:Rules", "Wiki Wort:Rules"),
        ("/wiki/Modul:lower", "Modul:lower"),
        ("/w/index.php?title=A_b", "A b"),
        ("/w/index.php?title=A%26b", "A&b"),
        ("/w/index.php?title=A&action=view", "A"),
        ("/w/index.php/A_b", "A b"),
    ],
)
def test_titles_of_urls(path, title):
    assert rules().title_of(canonicalize(ORIGIN + path)) == title


NO_TITLE = """
    / /wiki/ /wiki /other/A
    /wiki/A?action=history /wiki/A?oldid=3 /wiki/A?redirect=no
    /w/index.php /w/index.php?curid=4 /w/index.php?title=A&title=B
    /w/index.php?title=A&oldid=3 /w/index.php?title=A&diff=prev /w/index.php?title=A&action=edit
    /wiki/Special:Version /wiki/spezial:Version /wiki/Media:A.png
    /wiki/wikt:word /wiki/FR:Mot /wiki/Talk: /wiki/Talk::x
    /wiki/A%5Bb /wiki/A%7Cb /wiki/A%7B%7Bb /wiki/A%FFb
    /wiki/%25%34%31 /wiki/a~~~b /wiki/a&amp;b /wiki/..%2Fx
"""
TOO_LONG = (
    "/w/index.php?" + "&".join(f"a{n}=1" for n in range(50)),
    "/wiki/" + "a" * 256,
    "/wiki/" + "%C3%A9" * 128,
)


@pytest.mark.parametrize("path", [*NO_TITLE.split(), *TOO_LONG])
def test_urls_that_name_no_title(path):
    assert rules().title_of(canonicalize(ORIGIN + path)) is None


def test_a_title_may_have_255_bytes():
    assert rules().title_of(f"{ORIGIN}/wiki/{'%C3%A9' * 127}A") == "É" + "é" * 126 + "A"


def test_case_sensitive_wikis_keep_the_first_letter():
    spaces = {0: Namespace(0, "", first_letter=False)}
    assert rules(namespaces=spaces).title_of(f"{ORIGIN}/wiki/lower") == "lower"


def test_main_page_at_the_root():
    assert rules(main_page="Start page").title_of(f"{ORIGIN}/") == "Start page"


@pytest.mark.parametrize(
    ("article_path", "url"),
    [
        ("/$1", "/A_b"),
        ("/w/index.php?title=$1", "/w/index.php?title=A_b"),
        ("/w/index.php/$1", "/w/index.php/A_b"),
        ("/view/$1.html", "/view/A_b.html"),
        ("/%D0%B2%D0%B8%D0%BA%D0%B8/$1", "/%D0%B2%D0%B8%D0%BA%D0%B8/A_b"),
    ],
)
def test_article_paths_of_any_form(article_path, url):
    wiki = rules(article_path=article_path)
    assert wiki.url_of("A b", ORIGIN) == ORIGIN + url
    assert wiki.title_of(ORIGIN + url) == "A b"


def test_a_lone_surrogate_is_replaced_in_the_url():
    assert rules().url_of("a\ud800", ORIGIN) == ORIGIN + "/wiki/a%3F"


@given(st.text(string.printable + "áßИ北😀:?&%+'\"", min_size=1, max_size=60))
def test_title_and_url_round_trip(written):
    wiki = rules()
    title = wiki.normalize(written)
    if title is not None:
        assert wiki.normalize(title) == title
        url = wiki.url_of(title, ORIGIN)
        assert wiki.title_of(url) == title
