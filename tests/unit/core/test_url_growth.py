"""Sets of URLs that grow without new content, on simulated sites, beside those that do not."""

import itertools
import random
from collections import deque
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawld.core import url_growth
from crawld.core.url import split_url
from crawld.core.url_growth import (
    FULL_BUDGET,
    MAX_HOST_PATTERNS,
    MAX_PATTERNS,
    OTHERS,
    PROBE_S,
    SAMPLE,
    START_BUDGET,
    KnownText,
    UrlGrowth,
    UrlPattern,
    file_pieces,
    pattern_of,
    text_pieces,
)
from tests.unit.steps import assert_linear

NOW = 1_780_000_000.0
WORDS = [f"{a}{b}" for a in ("lum", "pra", "ost", "vek", "dri", "sul") for b in ("om", "ita", "ek")]


def page(*texts, links=()):
    anchors = "".join(f'<li><a href="{link}">{label}</a></li>' for link, label in links)
    body = "".join(f"<p>{text}</p>" for text in texts)
    return f"<!DOCTYPE html><nav>Home Contact Imprint</nav>{body}<ul>{anchors}</ul>".encode()


def prose(seed, words=30):
    chosen = random.Random(seed)
    return " ".join(chosen.choice(WORDS) for _ in range(words))


class Site:
    """A site as a function from URLs to pages; `visits` counts what a crawl of it fetched."""

    def __init__(self, answer):
        self.answer = answer
        self.visits = []
        self.growth = UrlGrowth(self)
        self.hosts = set()
        self.refused = 0

    def __contains__(self, host):
        return host in self.hosts

    def crawl(self, *seeds, most=3_000, now=NOW):
        """Crawl breadth-first from seeds, as admission does; stop after `most` visits."""
        known, queue = set(seeds), deque(seeds)
        self.hosts |= {split_url(url).host for url in seeds}
        while queue and len(self.visits) < most:
            url = queue.popleft()
            parts = split_url(url)
            self.visits.append(url)
            body, links = self.answer(url)
            self.growth.visited(parts.host, parts.target, partial(text_pieces, body, parts.target))
            for link in links:
                if link in known:
                    continue
                to = split_url(link)
                if self.growth.refusing(to.host, to.target, now) is not None:
                    self.refused += 1
                    continue
                known.add(link)
                self.hosts.add(to.host)
                queue.append(link)
        return self

    def visited(self, part):
        return sum(part in url for url in self.visits)


def endless_parameters(url):
    """Every page links to more orders and views of one list."""
    depth = url.count("&") + 1
    links = [f"{url}&v{depth}={n}" for n in range(3)]
    return page("Our list of all things", "Thing one, thing two", links=[(links[0], "next")]), links


def facets(url):
    """Filters of twelve kinds, which may be combined, of forty goods."""
    base, _, query = url.partition("?")
    chosen = {each.split("=")[0]: each.split("=")[1] for each in query.split("&") if each}
    goods = [f"Blue garment of kind {WORDS[n % 18]} {WORDS[n // 3]}" for n in range(40)]
    shown = [each for n, each in enumerate(goods) if all(n % 3 == int(v) for v in chosen.values())]
    links = []
    for filter_name, value in itertools.product([f"f{c}" for c in "abcdefghijkl"], range(3)):
        if filter_name not in chosen:
            both = sorted({**chosen, filter_name: value}.items())
            links.append(f"{base}?" + "&".join(f"{k}={v}" for k, v in both))
    return page(*shown[:12], links=[("x", f"filter {n}") for n in range(12)]), links


MONTHS = "January February March April May June July August September October November December"


def calendar(url):
    """Two links a month, into the future and the past."""
    year, month = map(int, split_url(url).target.split("/")[2:4])
    here = year * 12 + month - 1
    links = [f"https://a.org/calendar/{m // 12}/{m % 12 + 1}" for m in (here - 1, here + 1)]
    days = "".join(f"<td>{day}</td>" for day in range(1, 29 + month % 3))
    name = MONTHS.split()[month - 1]
    return page(f"{name} {year}", "No events this month", f"<table>{days}</table>"), links


def subdomains(url):
    """Any host answers, and links to two others."""
    label = split_url(url).host.partition(".")[0]
    links = [f"https://{label}{letter}.a.org/" for letter in "xy"]
    return page("Welcome to our shop", "We are under construction"), links


def loop(url):
    """A relative link without a slash appends to the path."""
    links = [f"{url}news/", f"{url}about/team/"]
    return page("News and people", "There is nothing new since last year"), links


@pytest.mark.parametrize(
    ("answer", "seed", "most"),
    [
        (endless_parameters, "https://a.org/list?a=1", 450),
        (facets, "https://a.org/shop?fa=1", 2_200),
        (calendar, "https://a.org/calendar/2026/11", 150),
        (subdomains, "https://m.a.org/", 200),
        (loop, "https://a.org/x/", 450),
    ],
    ids=["parameters", "facets", "calendar", "subdomains", "loop"],
)
def test_a_trap_ends(answer, seed, most):
    site = Site(answer).crawl(seed)
    assert START_BUDGET < len(site.visits) <= most
    assert site.refused > 0
    assert any(each.has_ended for each in site.growth.of_host(split_url(seed).host))


def archive(url):
    """Ten thousand pages with text of their own, all linked from lists of a hundred."""
    target = split_url(url).target
    if target.startswith("/lists"):
        at = int(target.partition("=")[2])
        links = [f"https://a.org/archive?id={at * 100 + n}" for n in range(100)]
        links += [f"https://a.org/lists?page={at + 1}"] * (at < 99)
        return page("All articles", links=[(link, prose(link, 4)) for link in links]), links
    return page("Our archive of everything that was ever written", prose(url)), []


def test_a_deep_archive_is_not_cut():
    site = Site(archive).crawl("https://a.org/lists?page=0", most=20_000)
    assert site.visited("/archive?id=") == 10_000
    assert site.refused == 0
    assert not any(each.has_ended for each in site.growth.of_host("a.org"))


def test_an_archive_beside_a_trap_is_not_cut():
    def both(url):
        if "/list?" in url:
            return endless_parameters(url)
        body, links = archive(url)
        return body, [*links, "https://a.org/list?a=1"]

    site = Site(both).crawl("https://a.org/lists?page=0", most=20_000)
    assert site.visited("/archive?id=") == 10_000
    assert site.visited("/list?") < 600


@pytest.mark.parametrize(
    "text",
    [
        lambda n: prose(n, 6),  # short texts
        lambda n: "".join(f"<td>{random.Random(n * 99 + k).random():.3f}</td>" for k in range(60)),
        lambda n: f"Entry {n}: {prose(n, 8)}",
    ],
    ids=["short", "numbers", "numbered"],
)
def test_honest_pages_never_end(text):
    growth = UrlGrowth()
    for n in range(500):
        target = f"/entry?id={n}"
        body = page("A long text that all pages have. " * 8, text(n))
        growth.visited("a.org", target, lambda b=body, t=target: text_pieces(b, t))
        assert growth.refusing("a.org", target, NOW) is None


SERIAL = itertools.count()


def visits(growth, host, target, times, *, fresh=False):
    for _ in range(times):
        body = f"a page of {host}".encode() + (b" %d" % next(SERIAL)) * fresh
        growth.visited(host, target, lambda b=body: file_pieces(b))


def test_a_pattern_that_has_ended_begins_again_with_new_text():
    growth = UrlGrowth()
    visits(growth, "a.org", "/x/1", 8 + 1 + 20 + START_BUDGET)
    assert [each.has_ended for each in growth.of_host("a.org")] == [True]
    assert growth.refusing("a.org", "/x/77", NOW).pattern == "/x/#"
    assert growth.refusing("a.org", "/y/77", NOW) is None
    assert growth.refusing("a.org", "/x/78", NOW + PROBE_S) is None  # one a day is followed
    assert growth.refusing("a.org", "/x/79", NOW + PROBE_S) is not None
    visits(growth, "a.org", "/x/78", 1, fresh=True)
    assert growth.refusing("a.org", "/x/79", NOW + PROBE_S) is None
    assert growth.of_host("a.org")[0].refused == 2


def test_a_full_budget_is_checked_by_samples():
    growth = UrlGrowth()
    visits(growth, "a.org", "/x?y=1", 200, fresh=True)
    [counted] = growth.of_host("a.org")
    assert counted.budget == FULL_BUDGET
    calls = []
    for _ in range(160):
        growth.visited(
            "a.org", "/x?y=1", lambda: calls.append(1) or file_pieces(b"%d" % len(calls))
        )
    assert len(calls) == 10
    visits(growth, "a.org", "/x?y=1", 1_000)
    assert counted.has_ended


def test_a_page_of_a_sample_counts_for_all_of_its_sample():
    growth = UrlGrowth()
    visits(growth, "a.org", "/x?y=1", 10 * SAMPLE, fresh=True)
    [counted] = growth.of_host("a.org")
    assert (counted.budget, counted.pages % SAMPLE) == (FULL_BUDGET, 0)
    visits(growth, "a.org", "/x?y=1", SAMPLE)  # one text, which is new at the end of them
    first = counted.pages
    while not counted.has_ended:
        visits(growth, "a.org", "/x?y=1", 1)
    assert counted.pages - first == FULL_BUDGET


def test_patterns_of_a_host_are_capped_and_the_rest_is_one():
    growth = UrlGrowth()
    for n in range(300):
        visits(growth, "a.org", f"/{''.join(chr(97 + int(d)) for d in str(n))}/page", 1)
    visits(growth, "a.org", "/zzz/page", 1)
    assert len(growth._hosts["a.org"]) == MAX_HOST_PATTERNS + 1
    others = growth._hosts["a.org"][OTHERS]
    assert others.has_ended
    assert growth.refusing("a.org", "/zz/page", NOW) is others
    assert growth.refusing("a.org", "/a/page", NOW) is None  # has its own


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 30)), max_size=300))
def test_memory_is_bounded(visited):
    growth = UrlGrowth()
    for host, directory in visited:
        for _ in range(5):
            visits(growth, f"h{host}.org", f"/d{'x' * directory}/p", 1)
    assert growth._count == sum(map(len, growth._hosts.values())) <= MAX_PATTERNS
    assert all(len(each) <= MAX_HOST_PATTERNS + 1 for each in growth._hosts.values())
    ended = {
        host
        for host, patterns in growth._hosts.items()
        if any(each.has_ended for each in patterns.values())
    }
    assert growth._ended == ended


def test_the_least_used_pattern_is_dropped(monkeypatch):
    monkeypatch.setattr(url_growth, "MAX_PATTERNS", 3)
    growth = UrlGrowth()
    visits(growth, "a.org", "/x", 100)
    growth.take_changed()
    for host in ("b.org", "c.org", "d.org"):
        visits(growth, host, "/x", 1)
    assert list(growth._hosts) == ["b.org", "c.org", "d.org"]
    assert growth.take_changed() == {("a.org", "/*"): None}
    assert growth.refusing("a.org", "/x", NOW) is None


def test_patterns_go_on_after_a_restart():
    growth = UrlGrowth()
    visits(growth, "a.org", "/x/1", 60)
    [(_, counted)] = growth.take_changed().items()
    assert growth.take_changed() == {}
    again = UrlGrowth()
    known = KnownText(counted.known.stored())
    again.restore([UrlPattern("a.org", "/x/#", counted.pages, 1, counted.budget, 0, 0.0, known)])
    visits(again, "a.org", "/x/1", counted.budget)
    assert again.refusing("a.org", "/x/1", NOW) is not None


@pytest.mark.parametrize(
    ("target", "pattern"),
    [
        ("/", "/"),
        ("/a/b/c/d/e/f", "/a/b/c/**/*"),
        ("/2026/11/21/title", "/#/#/#/*"),
        ("/tiles/12/0/0/0.png", "/tiles/#/#/**/*"),
        ("/x/news/news/", "/x/(repeated)/"),
        ("/index.php?title=A", "/index.php?title"),
        ("/index.php?title", "/index.php?title"),
        ("/?p=12", "/?p"),
        ("/?utm5=12", "/?utm#"),
        ("/" + "a" * 500 + "/x", "/" + "a" * 199),
    ],
)
def test_pattern_of(target, pattern):
    assert pattern_of(target) == pattern


def test_text_without_scripts_numbers_and_its_own_path():
    def pieces(html):
        return text_pieces(html, "/deep/Path/7")

    march = pieces(b"<p>March 2031</p>")
    assert len(march) == 1
    assert pieces(b"<b>march 30</b><script>var a = 'random'</script><p>You: /deep/path/7") == march
    assert pieces(b"") == file_pieces(b"")
    assert pieces(b"<td>7.51<td>2031<td>8.02") == pieces(b"<td>7.51<td>1999<td>8.02")
    assert pieces(b"<td>7.51<td>8.02") != pieces(b"<td>7.51<td>8.03")


@pytest.mark.parametrize(
    "make",
    [
        lambda n: b"<" * n,
        lambda n: b">" * n,
        lambda n: b"<script" * n,
        lambda n: b"<p>a word 7" * n,
        lambda n: b"<td>7.5</td>" * n,
        lambda n: b"\0" * n,
    ],
    ids=range(6),
)
def test_the_work_for_a_page_is_linear(make):
    assert_linear(make, lambda body: text_pieces(body, "/a"))
