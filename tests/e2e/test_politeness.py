"""Gaps between requests to a host and to an address, as the server measures them."""

from itertools import pairwise
from statistics import median

import pytest

from tests.e2e.daemon_config import HOSTS, early_requests, site, start_daemon, write_config


def start(crawld, web, *, hosts=HOSTS, seeds=("/",), **politeness):
    urls = [web.url(path, host) for host in hosts for path in seeds]
    start_daemon(crawld, site(*urls), hosts=hosts, politeness=politeness)


def test_hosts_of_one_address_keep_both_delays(simweb, crawld):
    web = simweb(*(f"--host={host}" for host in HOSTS), "--pages=20")
    start(crawld, web, host_delay_s=0.12, address_delay_s=0.05)
    crawld.wait_until(lambda status: status["pages"]["visited"] == 60)
    assert early_requests(web, host_delay_s=0.12, address_delay_s=0.05) == []
    # No time is wasted: while a host waits, other hosts use the address.
    hosts = [row.host for row in web.ledger().rows()]
    assert sum(host != after for host, after in pairwise(hosts)) > 0.8 * len(hosts)


def test_a_slow_server_is_asked_once_per_delay_and_never_earlier(simweb, crawld):
    web = simweb("--host=a.test", "--pages=9", "--fault=/wiki/=slow:0.4")
    start(crawld, web, hosts=HOSTS[:1], host_delay_s=0.5)
    crawld.wait_until(lambda status: status["pages"]["visited"] >= 7)
    gaps = [gap_s for _, gap_s, _ in web.ledger().gaps()]
    assert min(gaps) >= 0.5
    # Counted from its responses, every gap after a page would be .9 s or more.
    assert min(gaps[2:]) < 0.9


def test_addresses_do_not_wait_for_each_other(simweb, crawld):
    web = simweb("--addresses=20", "--pages=3")
    hosts = [f"127.1.0.{n}" for n in range(1, 21)]
    start(crawld, web, hosts=hosts, host_delay_s=0.5, address_delay_s=0.5)
    crawld.wait_until(lambda status: status["pages"]["visited"] == 60)
    assert web.ledger().violations(delay_s=0.5, by="address") == []
    times = [row.complete_s for row in web.ledger().rows()]
    assert median(later - at for at, later in pairwise(times)) < 0.5 / 2


@pytest.mark.parametrize(
    "fault",
    [
        "redirect-chain:3",
        "close",
        "reset",
        "status:500",
        "close-mid-body",
        "invalid-header",
        "status:404",
    ],
)
def test_errors_and_redirects_are_requests_too(simweb, crawld, fault):
    web = simweb("--host=a.test", "--pages=8", f"--fault=/wiki/={fault}", "--fault-share=0.6")
    start(crawld, web, hosts=HOSTS[:1], host_delay_s=0.1)
    crawld.wait_until(lambda status: sum(status["visits"].values()) >= 4)
    assert early_requests(web, host_delay_s=0.1, address_delay_s=0.02) == []


@pytest.mark.parametrize("how", ["busy:2", "too-many:2"])
def test_a_retry_after_pauses_the_whole_host(simweb, crawld, how):
    web = simweb("--host=a.test", "--host=b.test", "--pages=4", f"--fault=/busy={how}")
    start(crawld, web, hosts=HOSTS[:2], seeds=("/busy", "/"))
    crawld.wait_until(lambda _: all(len(web.ledger().requests(host)) > 2 for host in HOSTS[:2]))
    for host in HOSTS[:2]:
        robots, busy, *later = web.ledger().requests(host)
        assert (robots.target, busy.target) == ("/robots.txt", "/busy")
        assert all(row.complete_s - busy.complete_s >= 2.0 for row in later)


def test_robots_txt_rules_are_obeyed(simweb, crawld):
    # robots.txt of the demo site forbids /private/.
    web = simweb("--demo")
    start_daemon(
        crawld,
        site(web.url("/"), web.url("/private/"), web.url("/private/notes")),
        politeness={"host_delay_s": 0.02, "address_delay_s": 0.0},
    )
    status = crawld.wait_until(lambda status: status["pages"]["visited"] >= 80)
    assert status["pages"]["excluded"] == 2
    assert not [row for row in web.ledger().rows() if row.target.startswith("/private")]
    assert [row.target for row in web.ledger().rows()].count("/robots.txt") == 1


def test_the_user_agent_names_version_and_contact(simweb, crawld):
    web = simweb("--host=a.test", "--pages=2")
    start(crawld, web, hosts=HOSTS[:1])
    crawld.wait_until(lambda status: status["pages"]["visited"] == 2)
    agents = {row.user_agent for row in web.ledger().rows()}
    assert agents == {f"crawld/{crawld.get('/status')['version']} (+test@example.org)"}


def test_a_restart_waits_the_whole_delay_first(simweb, crawld):
    web = simweb("--host=a.test", "--host=b.test", "--pages=9")
    start(crawld, web, hosts=HOSTS[:2], host_delay_s=0.8, address_delay_s=0.4)
    for _ in range(2):
        asked = len(web.ledger())
        crawld.wait_until(lambda _, asked=asked: len(web.ledger()) > asked + 2)
        crawld.kill()
        crawld.start("run", "-c", crawld.folder / "crawld.toml")
    asked = len(web.ledger())
    crawld.wait_until(lambda _: len(web.ledger()) > asked)
    assert early_requests(web, host_delay_s=0.8, address_delay_s=0.4) == []


def test_a_restart_waits_the_delay_of_a_slow_site_beside_a_fast_one(simweb, crawld):
    # Both are on one address: the address's delay after the slow site survives a restart.
    web = simweb("--host=a.test", "--host=b.test", "--pages=9")
    fast = site(web.url("/", "a.test"), name="fast", host_delay_s=0.1)
    slow = site(web.url("/", "b.test"), name="slow", host_delay_s=30.0)  # address: 3 s
    config = write_config(crawld, slow, fast, politeness={"host_delay_s": 0.1}, hosts=HOSTS[:2])
    text = config.read_text().replace("address_delay_s = 0.02\n", "")
    config.write_text(text)
    crawld.start("run", "-c", config)
    crawld.wait_until(lambda _: web.ledger().requests("b.test"))
    crawld.kill()
    asked = len(web.ledger())
    crawld.start("run", "-c", config)
    crawld.wait_until(lambda _: len(web.ledger()) > asked)
    last_slow = web.ledger().requests("b.test")[-1].complete_s
    after = [row for row in web.ledger().rows() if row.complete_s > last_slow]
    assert after[0].complete_s - last_slow >= 3.0
