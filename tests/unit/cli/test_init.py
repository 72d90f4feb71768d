"""`crawld init`: the template, and the first config of a site."""

import tomllib

import pytest

from crawld.cli.init import init
from crawld.config.load import load
from crawld.config.starter import SiteLook, WikiLook, starter_config
from crawld.errors import ConfigError

WIKI = WikiLook(
    name="Wikipedia",
    software="MediaWiki 1.45.0",
    article_path="/wiki/$1",
    special="Spezial",
    category="Kategorie",
)


def look(url="https://de.wikipedia.org/wiki/Physik", **changed):
    fields = {
        "url": url,
        "title": "Physik – Wikipedia",
        "crawl_delay_s": None,
        "sitemaps": (),
        "media_hosts": (),
        "is_private": False,
        "wiki": None,
    }
    return SiteLook(**(fields | changed))


def write(*places, contact=None):
    return init([str(place) for place in places], contact=contact, allow_private=False)


def loaded(tmp_path, text):
    path = tmp_path / "crawld.toml"
    path.write_text(text)
    return load(path)


def uncommented(text, *keys):
    """Return the config with some of its commented keys, as an operator would edit it."""
    for key in keys:
        assert f"\n#{key} = " in text, key
        text = text.replace(f"\n#{key} = ", f"\n{key} = ")
    return text


def test_the_template_is_written_once(tmp_path, capsys):
    target = tmp_path / "new"
    assert write(target) == 0
    (target / "crawld.toml").write_text("mine")
    with pytest.raises(ConfigError, match="exists"):
        write(target)
    with pytest.raises(ConfigError, match="exists"):  # before any request
        write("http://127.0.0.1:9/", target)
    assert (target / "crawld.toml").read_text() == "mine"
    capsys.readouterr()


def test_a_file_in_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="file"):
        write(tmp_path / "file")


@pytest.mark.parametrize(
    "more", [("a", "b"), ("https://a.test/", "b", "c"), ("a", "http://a.test")]
)
def test_other_arguments_are_refused(more):
    with pytest.raises(ConfigError, match="arguments"):
        write(*more)


def test_a_wikimedia_wiki_gets_its_media_host_and_the_names_of_its_language(tmp_path):
    found = loaded(tmp_path, starter_config(look(wiki=WIKI), contact="me@example.org"))
    [site] = found.config.sites
    assert found.warnings == ()
    assert site.api
    assert site.include == ("prefix:/wiki/",)
    assert site.exclude == ("prefix:/wiki/Spezial:",)
    assert site.requisite_hosts == ("upload.wikimedia.org", "wikimedia.org")
    assert found.config.politeness.groups[0].hosts == ("upload.wikimedia.org",)
    assert found.config.daemon.contact == "me@example.org"


@pytest.mark.parametrize(
    "keys",
    [
        ("wiki_titles", "wiki_talk", "page_source"),
        ("wiki_categories", "wiki_category_depth"),
        ("wiki_prefixes", "settle_s", "event_stream"),
    ],
)
def test_each_commented_part_is_valid(tmp_path, keys):
    text = starter_config(look(wiki=WIKI), contact="me@example.org")
    site = loaded(tmp_path, uncommented(text, *keys)).config.sites[0]
    assert site.wiki_scoped
    assert all(getattr(site, key) for key in keys)


def test_a_title_list_of_the_config_is_valid(tmp_path):
    (tmp_path / "titles.txt").write_text("Physik\nC++\n")
    text = starter_config(look(wiki=WIKI), contact="me@example.org")
    seeds = loaded(tmp_path, uncommented(text, "titles_file", "title_url")).seeds
    assert seeds["de.wikipedia.org"].count == 3


def test_a_public_host_needs_a_contact_first(tmp_path):
    text = starter_config(look(), contact=None)
    with pytest.raises(ConfigError, match="contact"):
        loaded(tmp_path, text)
    loaded(tmp_path, uncommented(text, "contact"))


def test_a_plain_site_stays_in_its_folder(tmp_path):
    seen = look(
        "https://docs.test/manual/start.html?x=1",
        crawl_delay_s=30.0,
        sitemaps=("https://docs.test/map.xml",),
        media_hosts=("cdn.test",),
        is_private=True,
    )
    text = starter_config(seen, contact="me@example.org")
    site = loaded(tmp_path, text).config.sites[0]
    assert site.include == ("prefix:/manual/",)
    assert site.requisite_hosts == ("cdn.test",)
    assert site.allow_private_hosts == ("docs.test",)
    assert "robots.txt asks for 30 s" in text
    assert "https://docs.test/map.xml" in text


@pytest.mark.parametrize(
    "words", ['"\n[evil]\nx = 1 # ', "\x00\x1b[31m\u2028\x85]] '''", "\r\ncontact = 5", "\ud800"]
)
@pytest.mark.parametrize("is_wiki", [True, False])
def test_words_of_the_site_stay_within_comments_and_texts(words, is_wiki):
    wiki = WikiLook(
        name=words, software=words, article_path="/wiki/$1", special=words, category=words
    )
    seen = look(title=words, sitemaps=(words,), wiki=wiki if is_wiki else None)
    parsed = tomllib.loads(starter_config(seen, contact="a@b.test"))
    assert set(parsed) == {"daemon", "web", "politeness", "site"}
    assert parsed["daemon"]["contact"] == "a@b.test"
