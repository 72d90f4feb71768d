"""The values that the rest of the program gets from the config."""

from importlib.metadata import version

import pytest

from crawld.config import derive
from crawld.config.model import Config
from crawld.core.politeness import DelayRules
from crawld.core.traps import TrapLimits
from crawld.net.exchange import FetchLimits

WINTER, SUMMER = 1_768_478_400.0, 1_784_116_800.0  # 15 January and 15 July 2026, 12:00 UTC


def config(politeness=None, **site):
    site = {"name": "s", "seeds": ["https://a.example/x", "https://b.example/"], **site}
    return Config.model_validate({"politeness": politeness or {}, "site": [site]})


def test_defaults_match_those_of_core_and_net():
    assert derive.trap_limits(Config()) == TrapLimits()
    assert derive.delay_rules(Config(), config().sites[0], WINTER) == DelayRules()
    limits = Config().fetch.model_dump(exclude={"http2"})
    assert FetchLimits(**limits) == FetchLimits()


def test_user_agent():
    contact = Config.model_validate({"daemon": {"contact": "you@example.org"}})
    assert derive.user_agent(contact) == f"crawld/{version('crawld')} (+you@example.org)"
    assert derive.user_agent(Config()) == f"crawld/{version('crawld')}"


def test_scope_spans_seed_hosts_and_further_hosts():
    site = config(hosts=["C.example."], subdomains=True, exclude=["prefix:/no/"]).sites[0]
    scope = derive.site_scope(site, {"a.example", "b.example"})
    assert scope.hosts == {"a.example", "b.example", "c.example"}
    assert scope.refusal("https://w.c.example/", "w.c.example", 1) is None
    assert scope.refusal("https://a.example/no/1", "a.example", 1) == "exclude"
    assert scope.refusal("https://d.example/", "d.example", 1) == "host"


def test_content_types():
    site = config(content_types=["Text/HTML", "image/*"]).sites[0]
    kept = ["text/html", "IMAGE/png", "text/plain", "application/x-image/png"]
    assert [derive.wants_content_type(site, each) for each in kept] == [True, True, False, False]


def test_private_addresses_are_allowed_per_site_and_per_host():
    assert derive.allows_private(config(allow_private=True).sites[0], "any.example")
    one = config(allow_private_hosts=["[::1]"]).sites[0]
    assert derive.allows_private(one, "::1")
    assert not derive.allows_private(one, "127.0.0.1")


def test_a_site_overrides_delay_rules():
    both = config(
        {"host_delay_s": 9.0, "quiet_hours": ["01:00-02:00"], "respect_crawl_delay": False},
        host_delay_s=3.0,
        quiet_hours=[],
    )
    rules = derive.delay_rules(both, both.sites[0], WINTER)
    assert (rules.host_delay_s, rules.max_crawl_delay_s, rules.quiet_hours.spans) == (3.0, 0.0, ())


def test_quiet_hours_follow_summer_time():
    general = config({"quiet_hours": ["13:30-15:00"], "timezone": "Europe/Paris"})
    site = general.sites[0]
    # Noon UTC is 13:00 in a Paris winter and 14:00 in its summer.
    assert derive.delay_rules(general, site, WINTER).quiet_hours.open_at(WINTER) == WINTER
    assert derive.delay_rules(general, site, SUMMER).quiet_hours.open_at(SUMMER) == SUMMER + 3600


def test_importance_is_that_of_the_first_weight():
    weights = [
        {"pattern": "prefix:/api/", "importance": 3.0},
        {"pattern": "glob:*", "importance": 0.5},
    ]
    rules = derive.importance_rules(config(weights=weights).sites[0])
    assert derive.importance(rules, "https://any.example/api/x") == 3.0
    assert derive.importance(rules, "https://any.example/x") == 0.5
    assert derive.importance((), "https://any.example/x") == 1.0


@pytest.mark.parametrize(
    ("host", "public"),
    [
        ("127.0.0.1", False),
        ("::1", False),
        ("192.168.0.9", False),
        ("a.localhost", False),
        ("8.8.8.8", True),
        ("example.org", True),
        ("in.test", False),
        ("mixed.test", True),
    ],
)
def test_public_hosts(host, public):
    hosts = {"in.test": ["127.0.0.1"], "mixed.test": ["127.0.0.1", "8.8.8.8"]}
    assert derive.is_public_host(Config.model_validate({"dns": {"hosts": hosts}}), host) is public


@pytest.mark.parametrize(
    ("addresses", "loopback"),
    [(["127.0.0.2", "::1"], True), (["127.0.0.1", "192.0.2.1"], False), ([], False)],
)
def test_a_host_is_this_machine_if_all_its_addresses_are(addresses, loopback):
    hosts = {"a.example": addresses} if addresses else {}
    made = Config.model_validate({"dns": {"hosts": hosts}})
    assert derive.is_loopback_host(made, "a.example") is loopback
