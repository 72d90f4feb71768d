"""Admission of URLs by scope, traps and robots rules, and the memory of recent decisions."""

import pytest
import trio

from crawld.core.dust.rewrite import Rewrite, RewriteForm
from crawld.core.dust.rules import DustRule, HostRules
from crawld.core.robots import Robots
from crawld.core.url import canonicalize
from crawld.daemon.frontier.admission import (
    DOMAIN_FULL,
    MAX_HOSTS_PER_PAGE,
    TOO_MANY_HOSTS,
    Admission,
    RecentUrls,
    Referrer,
)
from crawld.daemon.frontier.domain_hosts import MAX_HOSTS_PER_DOMAIN, DomainHosts
from tests.unit.daemon.site_values import make_site

NOW = 1_780_000_000.0
HOME = "http://a.test/"


@pytest.fixture
def admission():
    return Admission(lambda origin: None)


async def admit(admission, site, *urls, depth=1, seed=False):
    """Return the admitted URLs and the reasons of the refusals."""
    source = Referrer(None if seed else 7, depth, seed=seed)
    result = await admission.admit(site, [canonicalize(url, HOME) for url in urls], source, NOW)
    return [each.url for each in result.found], {each.reason for each in result.refusals}


@pytest.mark.parametrize(
    ("site", "url", "reason"),
    [
        ({}, "/page", None),
        ({}, "http://b.test/", "host"),
        ({"hosts": ["b.test"]}, "http://b.test/", None),
        ({"subdomains": True}, "http://www.a.test/", None),
        ({}, "http://www.a.test/", "host"),
        ({"max_depth": 1}, "/page", None),
        ({"max_depth": 0}, "/page", "depth"),
        ({"exclude": ["prefix:/no/"]}, "/no/page", "exclude"),
        ({"include": ["prefix:/only/"], "seeds": [HOME + "only/"]}, "/page", "include"),
        ({}, "/a/b/a/b/a/b/a/b/a/b", "repetition"),
        ({}, "/" + "/".join(map(str, range(30))), "segments"),
        ({}, "/?" + "q" * 3000, "length"),
        ({}, "/calendar/2199/01/", "calendar"),
    ],
)
async def test_scope_and_traps_decide_admission(admission, site, url, reason):
    site = make_site(**{"seeds": [HOME], **site})
    found, reasons = await admit(admission, site, url)
    if reason is None:
        assert (found, reasons) == ([canonicalize(url, HOME)], set())
    else:
        assert (found, reasons) == ([], {reason})


async def test_a_full_domain_gets_no_more_hosts():
    known: dict[str, None] = {}
    domain_hosts = DomainHosts(known)
    admission = Admission(lambda origin: None, domain_hosts=domain_hosts)
    for number in range(MAX_HOSTS_PER_DOMAIN):
        known[f"{number}.a.test"] = None
        domain_hosts.add(f"{number}.a.test")
    site = make_site(seeds=[HOME], hosts=["b.test"], subdomains=True)
    urls = ["http://new.a.test/", "http://7.a.test/", "http://new.b.test/"]
    assert await admit(admission, site, *urls) == (urls[1:], {DOMAIN_FULL})
    # Seeds are the operator's; and nothing of it is remembered.
    assert await admit(admission, site, urls[0], seed=True) == (urls[:1], set())


async def test_a_page_adds_urls_of_few_hosts_at_a_visit(admission):
    site = make_site(seeds=[HOME], subdomains=True)
    urls = [f"http://{n}.a.test/{k}" for n in range(2 * MAX_HOSTS_PER_PAGE) for k in (1, 2)]
    first, reasons = await admit(admission, site, *urls)
    assert first == urls[: 2 * MAX_HOSTS_PER_PAGE]
    assert reasons == {TOO_MANY_HOSTS}
    # The next visit of the page adds the others; nothing is refused for good.
    assert await admit(admission, site, *urls) == (urls[2 * MAX_HOSTS_PER_PAGE :], set())
    assert await admit(admission, site, *urls) == ([], set())


async def test_seeds_may_have_any_number_of_hosts(admission):
    site = make_site(seeds=[HOME], subdomains=True)
    urls = [f"http://{n}.a.test/" for n in range(2 * MAX_HOSTS_PER_PAGE)]
    assert await admit(admission, site, *urls, seed=True) == (urls, set())


async def test_the_requisites_of_a_page_are_on_few_hosts(admission):
    site = make_site(seeds=[HOME], requisite_hosts=["*"])
    urls = [f"http://{n}.test/i.png" for n in range(MAX_HOSTS_PER_PAGE + 9)]
    for _ in range(2):  # the same ones each time, since the file keeps what a page needs
        admitted = await admission.admit_requisites(site, urls, Referrer(7, 1), NOW)
        assert [each.url for each in admitted.found] == urls[:MAX_HOSTS_PER_PAGE]
        assert {each.reason for each in admitted.refusals} == {TOO_MANY_HOSTS}


async def test_robots_refuse_links_but_not_seeds():
    rules = Robots.parse(b"User-agent: *\nDisallow: /private", "crawld")
    admission = Admission(lambda origin: rules if origin == "http://a.test" else None)
    site = make_site(seeds=[HOME], hosts=["b.test"])
    assert await admit(admission, site, "/private/x", "/x") == ([HOME + "x"], {"robots"})
    assert await admit(admission, site, "http://b.test/private") == (
        ["http://b.test/private"],
        set(),
    )
    # A seed becomes a page, which is then shown as excluded.
    assert await admit(admission, site, "/private/y", seed=True) == ([HOME + "private/y"], set())


async def test_a_recent_url_is_not_judged_again(admission):
    site = make_site(seeds=[HOME])
    assert await admit(admission, site, "/x", "http://b.test/") == ([HOME + "x"], {"host"})
    assert await admit(admission, site, "/x", "http://b.test/") == ([], set())
    admission.forget()
    assert await admit(admission, site, "/x", "http://b.test/") == ([HOME + "x"], {"host"})


async def test_seeds_are_always_judged(admission):
    site = make_site(seeds=[HOME])
    for _ in range(2):
        assert await admit(admission, site, "/x", depth=0, seed=True) == ([HOME + "x"], set())


async def test_each_site_judges_a_url_itself(admission):
    one, two = make_site(seeds=[HOME], site_id=1), make_site(seeds=[HOME], site_id=2)
    assert (
        await admit(admission, one, "/x")
        == await admit(admission, two, "/x")
        == ([HOME + "x"], set())
    )


async def test_a_url_that_was_too_deep_is_admitted_from_a_page_nearer_to_the_seeds(admission):
    site = make_site(seeds=[HOME], max_depth=2)
    assert await admit(admission, site, "/x", depth=3) == ([], {"depth"})
    assert await admit(admission, site, "/x", depth=3) == ([], set())
    assert await admit(admission, site, "/x", depth=2) == ([HOME + "x"], set())
    assert await admit(admission, site, "/x", depth=3) == ([], set())


async def test_the_fields_of_an_admitted_url(admission):
    site = make_site(
        seeds=[HOME], weights=[{"pattern": "prefix:/news/", "importance": 3.0}], site_id=4
    )
    admitted = await admission.admit(
        site, ["http://a.test:81/x", HOME + "news/1"], Referrer(7, 2), NOW
    )
    page, news = admitted.found
    assert (page.host, page.origin, page.site_id) == ("a.test", "http://a.test:81", 4)
    assert (page.depth, page.referrer_id, page.seed, page.at) == (2, 7, False, NOW)
    assert (page.importance, news.importance) == (1.0, 3.0)


async def test_a_link_that_every_page_names_is_admitted_again_after_it_was_taken_back(admission):
    site = make_site(seeds=[HOME])
    urls = [HOME + "page"]
    source = Referrer(7, 1)
    first = await admission.admit(site, urls, source, NOW)
    for _ in range(3):
        assert not (await admission.admit(site, urls, source, NOW)).found
    admission.take_back(first)
    assert len((await admission.admit(site, urls, source, NOW)).found) == 1


async def test_a_link_that_every_page_names_is_judged_for_each_site_and_after_new_rules(admission):
    urls, source = [HOME + "page"], Referrer(7, 1)
    for _ in range(3):
        await admission.admit(make_site(seeds=[HOME]), urls, source, NOW)
    other = make_site(site_id=5, seeds=[HOME])
    assert len((await admission.admit(other, urls, source, NOW)).found) == 1
    admission.forget()
    excluding = make_site(seeds=[HOME], exclude=["prefix:/page"])
    assert (await admission.admit(excluding, urls, source, NOW)).refusals


async def test_a_link_that_was_too_deep_is_admitted_nearer_to_the_seeds(admission):
    site = make_site(seeds=[HOME], max_depth=2)
    for _ in range(3):
        assert await admit(admission, site, "/page", depth=3) in (([], {"depth"}), ([], set()))
    assert await admit(admission, site, "/page", depth=2) == ([HOME + "page"], set())


def test_recent_urls_are_bounded_and_drop_the_oldest():
    recent = RecentUrls(generation=100)
    for key in range(1000):
        recent.add(key)
        assert key in recent
    assert 899 not in recent or 799 not in recent
    assert sum(key in recent for key in range(1000)) <= 200
    assert 999 in recent


async def test_other_tasks_run_while_a_page_with_many_links_is_admitted(admission, nursery):
    urls = [f"{HOME}{number}" for number in range(4_000)]
    runs = []

    async def count():
        while True:
            runs.append(1)
            await trio.lowlevel.checkpoint()

    nursery.start_soon(count)
    for admit in (admission.admit, admission.admit_requisites):
        runs.clear()
        result = await admit(make_site(seeds=[HOME]), urls, Referrer(7, 1), NOW)
        assert [each.url for each in result.found] == urls
        assert len(runs) >= len(urls) // 256 - 2
    nursery.cancel_scope.cancel()


async def test_rules_that_change_during_an_admission_leave_no_old_decisions(admission, nursery):
    urls = [f"{HOME}{number}" for number in range(4_000)]
    old, new = make_site(seeds=[HOME], exclude=["prefix:/"]), make_site(seeds=[HOME])

    async def change_rules():
        admission.forget()

    nursery.start_soon(change_rules)
    refused = await admission.admit(old, urls, Referrer(7, 1), NOW)
    assert len(refused.refusals) == len(urls)
    admitted = await admission.admit(new, urls, Referrer(7, 1), NOW)
    assert [each.url for each in admitted.found] == urls


async def test_urls_that_links_name_are_counted_and_not_what_stands_for_them(admission):
    origin = HOME.rstrip("/")
    rule = DustRule(Rewrite(RewriteForm.DROP, "sid"), "")
    admission.dust.set({origin: HostRules([rule])})
    site = make_site(seeds=[HOME])
    found, _ = await admit(admission, site, *(f"/page/{n}?sid=a{n}" for n in range(400)))
    assert found == [f"{HOME}page/{n}" for n in range(400)]
    assert admission.dust.named_urls(origin) == pytest.approx(387, rel=0.05)
    await admit(admission, site, *(f"/other/{n}" for n in range(400)))
    assert admission.dust.named_urls(origin) == pytest.approx(774, rel=0.05)
