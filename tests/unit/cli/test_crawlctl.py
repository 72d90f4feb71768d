import subprocess
import sys


def test_crawlctl_loads_the_responses_of_the_daemon_and_not_the_daemon():
    code = "import crawld.cli.crawlctl, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "crawld.daemon.api.schemas.status" in loaded
    assert loaded & {"crawld.daemon.daemon", "crawld.net", "fastapi", "hypercorn"} == set()
