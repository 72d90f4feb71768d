"""Every server fault has an outcome, and the crawl continues."""

from crawld.simweb.demo import make_sites
from tests.e2e.daemon_config import query_rows, site, start_daemon

SHORT_TIMEOUTS = {
    "connect_s": 6.0,
    "header_s": 4.0,
    "stall_s": 3.0,
    "total_s": 6.0,
    "max_wire_bytes": 1_000_000,
    "max_body_bytes": 4_000_000,
}

OUTCOMES = {
    "hang": ("failed", "timeout"),
    "hang-mid-body": ("failed", "timeout"),
    "drip:0.2": ("failed", "timeout"),
    "slow:5": ("failed", "timeout"),
    "close": ("failed", "connect"),
    "reset": ("failed", "connect"),
    "close-mid-body": ("failed", "truncated"),
    "length:500": ("failed", "truncated"),
    "length:-500": ("changed", None),
    "gzip-bomb:500000000": ("failed", "wrong_type"),  # zeros are not a page, so reading stops
    "corrupt-gzip": ("failed", "decoding"),
    "endless-body": ("failed", "too_large"),
    "endless-header": ("failed", "protocol"),
    "huge-header:200000": ("failed", "protocol"),
    "invalid-header": ("failed", "protocol"),
    "invalid-chunks": ("failed", "protocol"),
    "junk": ("failed", "protocol or truncated"),  # random bytes
    "redirect-loop": ("failed", "bad_redirect"),
    "redirect:ftp://a.test/": ("failed", "bad_redirect"),
    "redirect:http://outside.test/": ("moved", None),
    "status:404": ("gone", None),
    "status:410": ("gone", None),
    "status:418": ("failed", "http_status"),
    "status:500": ("failed", "http_status"),
    "status:503": ("failed", "unavailable"),
    "status:401": ("blocked", "unauthorized"),
    "status:403": ("blocked", "unauthorized"),
    "too-many:0": ("blocked", "rate_limited"),
    "busy:0": ("blocked", "unavailable"),
    "mistyped:text/html": ("changed", None),
    "mistyped:image/png": ("changed", None),
}


def matches(found, wanted):
    outcomes, failures = wanted[0], (wanted[1] or "None").split(" or ")
    return found[0] == outcomes and str(found[1]) in failures


def test_each_fault_has_its_outcome_and_delays_no_other_host(simweb, crawld):
    # One host per fault, so that back-off does not slow down the other faults.
    hosts = {f"h{n}.test": name for n, name in enumerate(OUTCOMES)}
    everyone = (*hosts, "fine.test")
    sites = make_sites(list(everyone), pages=3, seed=1)
    paths = {host: each.graph.path(1) for host, each in zip(everyone, sites, strict=True)}
    faults = [f"--fault={paths[host]}={name}" for host, name in hosts.items()]
    web = simweb(*(f"--host={host}" for host in everyone), "--pages=3", *faults)
    seeds = [web.url(paths[host], host) for host in hosts]
    start_daemon(
        crawld,
        site(*seeds, web.url("/", "fine.test")),
        # One address per host, because requests to one address are sequential.
        dns={"hosts": {host: [f"127.0.0.{n}"] for n, host in enumerate(everyone, start=2)}},
        fetch=SHORT_TIMEOUTS,
    )
    crawld.wait_until(lambda status: sum(status["visits"].values()) >= len(OUTCOMES) + 3)
    # A stop gives up a visit that takes longer than a few seconds: wait for each of them.
    visited = "SELECT count(DISTINCT host_id) FROM visit JOIN page USING (page_id)"
    crawld.wait_until(lambda _: query_rows(crawld, visited) == [(len(everyone),)])
    assert crawld.terminate() == 0
    found = query_rows(
        crawld,
        "SELECT host, outcome, failure FROM visit JOIN page USING (page_id) JOIN host"
        " USING (host_id) GROUP BY host HAVING visit_id = min(visit_id)",
    )
    outcomes = {hosts[host]: tuple(rest) for host, *rest in found if host in hosts}
    assert outcomes.keys() == OUTCOMES.keys()
    wrong = {name: found for name, found in outcomes.items() if not matches(found, OUTCOMES[name])}
    assert wrong == {}
    assert "Traceback" not in crawld.output()
    assert crawld.crawld("doctor", "--db", crawld.db).returncode == 0
