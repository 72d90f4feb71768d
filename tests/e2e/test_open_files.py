"""A daemon with few open files crawls many hosts: it keeps fewer connections and waits."""

import shutil
import sys

import pytest

from tests.e2e.daemon_config import site, write_config
from tests.peer.process import ManagedProcess

HOSTS = tuple(f"h{n}.d{n}.test" for n in range(120))


def test_a_daemon_keeps_within_its_open_files(crawld, simweb):
    program = shutil.which("prlimit")
    if program is None:
        pytest.skip("needs prlimit (util-linux)")
    web = simweb("--pages=2", *(f"--host={host}" for host in HOSTS))
    seeds = [web.url("/", host) for host in HOSTS]
    config = write_config(
        crawld,
        site(*seeds),
        hosts=HOSTS,
        # Every connection is kept: hosts are asked again within a second.
        politeness={"host_delay_s": 0.5, "address_delay_s": 0.0},
    )
    crawld.process = ManagedProcess(
        [program, "--nofile=80", sys.executable, "-m", "crawld.cli.main", "run", "-c", str(config)],
        crawld.folder,
        name="few-files",
        environment={"CRAWLD_SOCKET": str(crawld.socket)},
    )
    status = crawld.wait_until(lambda status: status["pages"].get("visited", 0) >= 2 * len(HOSTS))
    assert status["visits"].get("failed", 0) == 0
    assert status["pauses"] == []
    output = crawld.output()
    assert "network_down" not in output
    assert "turn_failed" not in output
    assert crawld.terminate() == 0
