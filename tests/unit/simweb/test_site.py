import gzip
import re
from urllib.parse import urljoin
from xml.etree import ElementTree as ET

import pytest

from crawld.simweb import demo
from crawld.simweb.change_process import FixedChanges, periodic_process
from crawld.simweb.graph import SiteGraph
from crawld.simweb.message import SimRequest, http_date
from crawld.simweb.site import SimSite, ValidatorBehavior
from crawld.simweb.trap import Trap

START = 1_700_000_000.0
EPOCH = periodic_process(100.0, start_at=START)


def ask(site, target="/", *, at=START, method="GET", serial=0, **headers):
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = site.handle(
        SimRequest(method, target, fields, "a.test", "http://a.test:80", at, serial)
    )
    head, _, body = answer.to_bytes().partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")[1:]
    return answer.status, dict(line.split(": ", 1) for line in lines), body


def make(**changes):
    return SimSite(
        ("a.test",), SiteGraph(30, seed=1), changes=lambda page: EPOCH, start_at=START, **changes
    )


def test_a_page_shows_the_revision_of_the_request_time():
    site = make()
    bodies = [ask(site, at=START + 50 + 100 * k)[2] for k in range(4)]
    assert len(set(bodies)) == 4
    assert bodies == [site.rendering.html(0, k) for k in range(4)]


def test_correct_validators_answer_304_until_the_page_changes():
    site = make()
    status, fields, _ = ask(site, at=START + 150)
    assert (status, fields["Last-Modified"]) == (200, http_date(START + 100))
    for validators in (
        {"if_none_match": fields["ETag"]},
        {"if_none_match": f'"x", W/{fields["ETag"]}'},
        {"if_none_match": "*"},
        {"if_modified_since": fields["Last-Modified"]},
    ):
        status, again, body = ask(site, at=START + 199, **validators)
        assert (status, body, again["ETag"]) == (304, b"", fields["ETag"])
    for validators in (
        {"if_none_match": fields["ETag"]},
        {"if_modified_since": fields["Last-Modified"]},
        {"if_modified_since": "not a date"},
        {"if_none_match": '"x"', "if_modified_since": http_date(START + 900)},
    ):
        assert ask(site, at=START + 200, **validators)[0] == 200


def test_wrong_validators_behave_as_configured():
    frozen = make(etag=ValidatorBehavior.FROZEN, last_modified=ValidatorBehavior.FROZEN)
    tag = ask(frozen)[1]["ETag"]
    assert ask(frozen, at=START + 950, if_none_match=tag)[0] == 304
    restless = make(etag=ValidatorBehavior.RESTLESS, last_modified=ValidatorBehavior.RESTLESS)
    _, fields, _ = ask(restless, serial=1)
    assert ask(restless, serial=2, if_none_match=fields["ETag"])[0] == 200
    assert fields["Last-Modified"] == http_date(START)
    absent = ask(make(etag=ValidatorBehavior.ABSENT, last_modified=ValidatorBehavior.ABSENT))[1]
    assert "ETag" not in absent
    assert "Last-Modified" not in absent
    future = ask(make(last_modified=ValidatorBehavior.FUTURE))[1]
    assert future["Last-Modified"] == http_date(START + 30 * 86400)


def test_head_gzip_methods_and_missing_pages():
    site = make(compress=True)
    plain = ask(site)[2]
    status, fields, body = ask(site, method="HEAD")
    assert (status, fields["Content-Length"], body) == (200, str(len(plain)), b"")
    assert gzip.decompress(ask(site, accept_encoding="gzip, br")[2]) == plain
    assert ask(site, method="POST")[0] == 405
    for path in ("/wiki/Nothing", "/calendar/2026/1", "/robots.txt", "/sitemap.xml", "//", "/%ff"):
        assert ask(site, path)[0] == 404
    for path in ("/style.css", "/logo.svg"):
        assert ask(site, path)[0] == 200


def test_robots_names_the_sitemap_and_its_dates_are_true():
    site = make(robots="User-agent: *\nDisallow: /x", sitemap=True)
    robots = ask(site, "/robots.txt")[2].decode()
    assert robots.endswith("\nSitemap: http://a.test:80/sitemap.xml\n")
    entries = ET.fromstring(ask(site, "/sitemap.xml", at=START + 250)[2])
    assert [entry[0].text for entry in entries] == [
        f"http://a.test:80{site.graph.path(page)}" for page in range(30)
    ]
    assert {entry[1].text for entry in entries} == {"2023-11-14T22:16:40Z"}


def test_a_large_site_has_a_sitemap_index():
    site = SimSite(("a.test",), SiteGraph(25_000), sitemap=True)
    places = [entry[0].text for entry in ET.fromstring(ask(site, "/sitemap.xml")[2])]
    found = [loc for place in places for loc in ET.fromstring(ask(site, place[16:])[2])]
    assert len(found) == 25_000
    for wrong in ("/sitemap-3.xml", "/sitemap-x.xml", "/sitemap²"):
        assert ask(site, wrong)[0] == 404


@pytest.mark.parametrize("trap", Trap)
def test_a_trap_is_linked_from_the_home_page_and_never_ends(trap):
    site = make(traps=(trap,))
    assert f'href="{trap.entry_path}"'.encode() in ask(site)[2]
    seen, path = set(), trap.entry_path
    for serial in range(40):
        status, _, body = ask(site, path, serial=serial)
        assert status == 200
        seen.add(path)
        links = [urljoin(path, link) for link in re.findall(r'href="([^"]+)"', body.decode())]
        assert all(link.split("/")[1] == trap.value for link in links)
        path = links[-1]
    assert len(seen) == 40
    assert ask(make(), trap.entry_path)[0] == 404


@pytest.mark.parametrize(
    "path", ["/calendar/2026", "/calendar/²/1", "/calendar/2026/13", "/again/x", "/calendar/0/1"]
)
def test_a_trap_has_no_page_for_junk(path):
    assert ask(make(traps=tuple(Trap)), path)[0] == 404


def test_urls_map_to_pages_for_any_host():
    site = make()
    path = site.graph.path(3)
    for url in (path, f"http://a.test:81{path}", f"https://mirror.test{path}?x=1"):
        assert site.page_of(url) == 3
    assert site.page_of("http://a.test") == 0
    assert site.page_of("http://a.test/robots.txt") is None
    assert site.page_of("http://[broken") is None


def test_the_demo_site_changes_like_a_wiki():
    site = demo.make_demo_site(7, lambda: START)
    again = demo.make_demo_site(7, lambda: START)
    counts = [site.revision(page, START + 600) for page in range(80)]
    assert counts == [again.revision(page, START + 600) for page in range(80)]
    assert 2 <= counts.count(0) <= 40
    assert max(counts) >= 15
    assert 200 <= sum(counts) <= 3000
    assert demo.make_demo_site(8, lambda: START).graph.path(1) != site.graph.path(1)


def test_generated_sites_differ_and_addresses_are_loopback():
    hosts = demo.loopback_addresses(300)
    assert len(set(hosts)) == 300
    assert all(host.startswith("127.1.") for host in hosts)
    sites = demo.make_sites(hosts, pages=5, seed=1)
    assert len({ask(site)[2] for site in sites}) == 300
    with pytest.raises(ValueError, match="addresses"):
        demo.loopback_addresses(2**24)


def test_fixed_changes_drive_a_page():
    site = SimSite(("a.test",), SiteGraph(1), changes=lambda page: FixedChanges([5.0, 9.0]))
    assert [site.revision(0, at) for at in (4.9, 5.0, 9.5)] == [0, 1, 2]
    assert site.modified_at(0, 8.0) == 5.0
