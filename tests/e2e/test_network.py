"""Without a network, the daemon reports it, retries politely, and fails no page."""

import shutil
import subprocess
import sys

import pytest

from tests.e2e.daemon_config import query_rows, site, start_daemon, write_config
from tests.peer.process import ManagedProcess


@pytest.fixture
def start_offline(crawld):
    """Return a function that starts a daemon in an empty network namespace."""
    program = shutil.which("unshare") or "/usr/bin/unshare"
    tried = subprocess.run([program, "-n", "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"cannot make an empty network: {tried.stderr.decode().strip()}; run as root")

    def start(*arguments):
        crawld.process = ManagedProcess(
            [program, "-n", sys.executable, "-m", "crawld.cli.main", *arguments],
            crawld.folder,
            name="offline",
            environment={"CRAWLD_SOCKET": str(crawld.socket)},
        )

    return start


@pytest.mark.parametrize("host", ["a.test", "example.org"])
def test_an_outage_is_reported_and_no_page_fails(crawld, start_offline, host):
    # An address from the config, and a name that needs a resolver.
    config = write_config(crawld, site(f"http://{host}/", f"http://{host}/more"), hosts=("a.test",))
    start_offline("run", "-c", config)
    crawld.wait_until(lambda status: status["pauses"] == ["network"])
    assert "network_down" in crawld.output()
    assert not crawld.process.exits_within(0.5)
    status = crawld.get("/status")
    assert sum(status["visits"].values()) == 0
    assert status["pages"]["discovered"] == 2
    assert crawld.get(f"/hosts/{host}")["backoff_level"] == 0
    assert crawld.output().count("network_down") == 1
    assert crawld.terminate() == 0
    assert query_rows(crawld, "SELECT count(*) FROM visit") == [(0,)]


def test_the_next_daemon_mirrors_what_could_not_be_fetched(crawld, start_offline, simweb):
    web = simweb("--host=a.test", "--pages=5")
    config = write_config(crawld, site(web.url("/", "a.test")), hosts=("a.test",))
    start_offline("run", "-c", config)
    crawld.wait_until(lambda status: status["pauses"] == ["network"])
    assert len(web.ledger()) == 0
    crawld.kill()
    crawld.start("run", "-c", config)
    crawld.wait_until(lambda status: status["pages"]["visited"] == 5)


def test_a_closed_port_and_an_unknown_name_are_not_an_outage(crawld, simweb):
    web = simweb("--host=a.test", "--pages=12")
    start_daemon(
        crawld,
        site(web.url("/", "a.test"), "http://no.such.invalid/", "http://127.0.0.1:1/"),
        hosts=("a.test",),
    )
    status = crawld.wait_until(lambda status: status["pages"]["visited"] == 12)
    assert status["pauses"] == []
    assert "network_down" not in crawld.output()
    assert crawld.get("/hosts/no.such.invalid")["robots"][0]["verdict"] in (None, "closed")
