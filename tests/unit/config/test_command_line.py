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


def test_invalid_urls_are_refused():
    with pytest.raises(InvalidUrlError):
        from_command_line(["example.org"])
    with pytest.raises(CrawldError):
        from_command_line([])
