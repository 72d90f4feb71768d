"""Who owns a host, and what its name says."""

import pytest

from crawld.core.replica.owners import (
    CROWDED,
    are_editions,
    crowded_domains,
    differ_by_www,
    inlink_domains,
    is_side_name,
    owner_of,
    site_name,
)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("www.a.com", "a.com", True),
        ("web2.a.com", "cache1.a.com", True),
        ("docs.a.com", "help.a.com", True),
        ("a.com", "a.com:8080", True),  # a host of its own, of one owner
        ("a.com", "a.net", False),
        ("one.blogspot.com", "other.blogspot.com", False),
        ("victim.farm.test", "thief.farm.test", False),  # the list does not know ".test"
        ("www.site.test", "staging.site.test", True),
        ("10.1.7.9", "10.2.7.9", False),  # "7.9" is nobody's domain
        ("10.1.7.9:80", "10.1.7.9:81", False),
        ("[2001:db8::1]", "[2001:db8::2]", False),
    ],
)
def test_owners_by_name(one, other, same):
    assert (owner_of(one) == owner_of(other)) is same


def test_a_domain_with_many_names_gives_them_to_anybody():
    company = [f"{label}{at}.company.com" for label in ("www", "web") for at in range(40)]
    farm = [f"wiki-{at}.farm.com" for at in range(CROWDED + 1)]
    crowded = crowded_domains([*company, *farm, "10.0.0.1"])
    assert crowded == {"farm.com"}
    assert owner_of("wiki-1.farm.com", crowded) != owner_of("wiki-2.farm.com", crowded)
    assert owner_of("www.wiki-1.farm.com", crowded) == owner_of("wiki-1.farm.com", crowded)
    assert owner_of("www1.company.com", crowded) == owner_of("web7.company.com", crowded)


def test_many_names_of_one_domain_are_one_inlink():
    thief = [f"n{at}.thief.net" for at in range(500)]
    assert inlink_domains([*thief, "10.0.0.1"], ["copy.com"]) == 1
    assert inlink_domains(["a.com", "b.com", "blog.victim.org"], ["victim.org"]) == 2


def test_names_that_are_not_for_the_public():
    assert not any(map(is_side_name, ("www.a.com", "a.com", "demonstration.com", "shop.a.com")))
    assert all(map(is_side_name, ("staging.a.com", "shop-dev.a.com", "a.com:8080", "10.0.0.1")))


def test_editions_are_named_by_numbers_and_languages():
    for one, other in (
        ("v1.docs.a.com", "v2.docs.a.com"),
        ("docs-1.a.com", "docs-12.a.com"),
        ("1-4.docs.a.com", "1-5.docs.a.com"),
        ("v2.docs.a.com", "latest.docs.a.com"),
        ("en.a.com", "de.a.com"),
        ("a.de", "a.fr"),
        ("2023.conf.org", "2024.conf.org"),
    ):
        assert are_editions(one, other)
    for one, other in (
        ("www.a.com", "a.com"),
        ("web1.a.com", "web2.a.com"),
        ("www-1.a.com", "www-2.a.com"),
        ("a.com", "b.com"),
        ("en.a.com", "shop.a.com"),
        ("10.0.0.1", "10.0.0.2"),
        ("a.com", "a.com:8080"),
    ):
        assert not are_editions(one, other)


def test_www_and_site_names():
    assert differ_by_www("www.a.com", "a.com")
    assert not differ_by_www("a.com", "a.com")
    assert site_name("www.com") == "www.com"  # the registrable domain stays
    assert site_name("m.shop.a.co.uk") == "shop.a.co.uk"
