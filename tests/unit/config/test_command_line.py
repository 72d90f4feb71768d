"""The config of `crawld mirror`, from its arguments."""

import pytest

from crawld.config.command_line import from_command_line
from crawld.errors import ConfigError, CrawldError, InvalidUrlError


def test_defaults_are_polite():
    config = from_command_line(["https://en.wikipedia.org/wiki/X"], contact="a@b.org")
    site = config.sites[0]
    assert config.politeness.host_delay_s == 15.0
    assert (site.name, site.max_depth, site.max_pages) == ("en.wikipedia.org", 1, 1_000)
    assert not site.allow_private
    assert site.allow_private_hosts == ()


def test_a_typed_private_address_allows_only_itself():
    urls = ["http://127.0.0.1:8080/", "http://[::1]/", "http://0x7f.2/", "http://localhost/"]
    site = from_command_line(urls, delay_s=0.0).sites[0]
    assert site.allow_private_hosts == ("127.0.0.1", "::1", "127.0.0.2", "localhost")
    assert not site.allow_private


def test_site_names_are_valid_and_stable():
    assert from_command_line(["http://[::1]/"]).sites[0].name == "1"
    urls = ["https://" + "a" * 60 + ".example.org/"]
    assert len(from_command_line(urls, contact="a@b.org").sites[0].name) == 64


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({}, "--contact"),
        ({"contact": "x"}, "--contact x"),
        ({"contact": "a@b.org", "delay_s": -1.0}, "--delay -1"),
        ({"contact": "a@b.org", "delay_s": float("nan")}, "--delay nan"),
        ({"contact": "a@b.org", "depth": -1}, "--depth -1"),
        ({"contact": "a@b.org", "max_pages": 0}, "--max-pages 0"),
    ],
)
def test_errors_name_the_command_line_option(keys, part):
    with pytest.raises(ConfigError) as caught:
        from_command_line(["https://a.example/"], **keys)
    assert part in str(caught.value)


def test_patterns_are_those_of_the_config():
    patterns = {"include": ["prefix:https://a.example/b"], "exclude": ["glob:*/x", "regex:y$"]}
    site = from_command_line(["https://a.example/b"], contact="a@b.org", **patterns).sites[0]
    assert (list(site.include), list(site.exclude)) == (*patterns.values(),)
    with pytest.raises(ConfigError, match="--include nothing"):
        from_command_line(["https://a.example/"], contact="a@b.org", include=["nothing"])


def test_no_parent_keeps_to_the_directories_of_the_urls():
    urls = ["https://a.example/docs/guide?x=/y/", "https://b.example"]
    site = from_command_line(urls, contact="a@b.org", no_parent=True).sites[0]
    assert site.include == ("prefix:https://a.example/docs/", "prefix:https://b.example/")
    with pytest.raises(ConfigError, match="--no-parent and --include"):
        from_command_line(urls, contact="a@b.org", no_parent=True, include=["prefix:https://x/"])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("docs.example.org", "https://docs.example.org/"),
        ("docs.example.org:8080/x", "https://docs.example.org:8080/x"),
        ("//docs.example.org", "https://docs.example.org/"),
        ("htps://docs.example.org", "https://docs.example.org/"),
        ("localhost:8080", "http://localhost:8080/"),
        ("127.0.0.1", "http://127.0.0.1/"),
        ("foo", None),
        ("ftp://a.org/", None),
        ("mailto:a@b.org", None),
        ("user:secret@a.org", None),
    ],
)
def test_a_url_without_a_scheme_is_suggested_with_one(typed, meant):
    with pytest.raises(InvalidUrlError) as caught:
        from_command_line([typed])
    expected = f"did you mean {meant}?" if meant else "a URL crawld can visit looks like"
    assert expected in caught.value.hint
    assert "secret" not in str(caught.value)


def test_invalid_urls_are_refused():
    with pytest.raises(InvalidUrlError):
        from_command_line(["example.org"])
    with pytest.raises(CrawldError):
        from_command_line([])
