"""`crawlctl` with a daemon that mirrors a simulated site."""

import json
import os
import signal
import subprocess
import sys

import pytest

from crawld.cli import crawlctl
from crawld.daemon.api.schemas.status import Status
from crawld.daemon.api.schemas.why import Why
from tests.e2e.cli.conftest import wait_for_lines

COMMANDS = sorted(
    each.callback.__name__.replace("_", "-") for each in crawlctl.app.registered_commands
)


@pytest.fixture
def ctl(command, running):
    """Run `crawlctl` on the running mirror."""
    return lambda *arguments: command("crawlctl", "--socket", running.socket, *arguments)


def parsed(ended):
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)


def test_every_documented_command_exists():
    documented = """add drain host hosts log page pages pause reload remove resume shutdown sites
    status"""
    assert set(documented.split()) <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help(command, name):
    ended = command("crawlctl", name, "--help")
    assert ended.code == 0
    for option in ("--socket", "--db", "--json"):
        assert option in ended.out


@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), ("page",), ("status", "--nonsense"), ("pages", "--state", "odd"), ()],
)
def test_wrong_usage(command, arguments):
    assert command("crawlctl", *arguments).code == 2


def test_pause_of_both_is_wrong_usage(ctl):
    assert ctl("pause", "--site", "a", "--host", "b").code == 2


def test_commands_that_show(ctl, running):
    status = Status.model_validate(parsed(ctl("status", "--json")))
    assert status.pid == running.process.pid
    assert status.phase == "running"
    assert parsed(ctl("sites", "--json"))[0]["name"] == "127.0.0.1"
    assert parsed(ctl("hosts", "--json"))[0]["delay_s"] == 0.5
    assert parsed(ctl("host", "127.0.0.1", "--json"))["host"] == "127.0.0.1"
    # The host delay applies between robots.txt and the page.
    pages = (parsed(ctl("page", running.url, "--json")) for _ in range(200))
    page = next(page for page in pages if page["last_visit_at"] is not None)
    assert (page["url"], page["seed"]) == (running.url, True)
    low, high = page["model"]["class_interval_days"]
    assert low <= high
    assert parsed(ctl("pages", "--json", "--limit", "1"))[0]["url"] == running.url
    assert isinstance(parsed(ctl("log", "--json")), list)


def test_tables_for_people(ctl, running):
    assert f"pid {running.process.pid}" in ctl("status").out
    for name in ("sites", "hosts", "pages"):
        ended = ctl(name)
        assert ended.code == 0
        assert "127.0.0.1" in ended.out
    assert "500 ms" in ctl("host", "127.0.0.1").out
    assert running.url in ctl("page", running.url).out
    assert ctl("log").code == 0


def test_why_of_a_running_daemon_and_of_its_file(ctl, command, running):
    unknown = f"{running.url}none"
    online = Why.model_validate(parsed(ctl("why", unknown, "--json")))
    offline = command("crawld", "why", unknown, "--db", running.db, "--json")
    beside = Why.model_validate(parsed(offline))
    assert (online.live, beside.live) == (True, False)
    assert (online.causes[0].cause, beside.causes[0].cause) == ("unknown", "unknown")
    assert "crawlctl add --site 127.0.0.1 URL" in ctl("why", unknown).out
    ended = ctl("why", "127.0.0.1/x")
    assert ended.code == 2
    assert "did you mean http://127.0.0.1/x?" in ended.err
    ctl("pause", "--host", "127.0.0.1")
    text = ctl("why", running.url).out
    assert "It is not fetched now. Its host 127.0.0.1 is paused." in text
    assert max(map(len, text.splitlines())) <= 80
    ctl("resume", "--host", "127.0.0.1")
    assert "is paused" not in ctl("why", running.url).out


def test_global_options_before_and_after_the_command(command, running):
    before = command("crawlctl", "--json", "--db", running.db, "sites")
    behind = command("crawlctl", "sites", "--json", "--db", running.db)
    assert parsed(before)[0]["name"] == parsed(behind)[0]["name"]


def test_the_variable_names_the_socket(command, running, monkeypatch):
    monkeypatch.setenv("CRAWLD_SOCKET", str(running.socket))
    assert parsed(command("crawlctl", "sites", "--json"))[0]["name"] == "127.0.0.1"


def test_pause_resume_and_drain(ctl):
    assert "paused" in ctl("pause").out
    assert parsed(ctl("status", "--json"))["pauses"] == ["operator"]
    assert parsed(ctl("resume", "--json")) == {"done": "everything resumed"}
    assert parsed(ctl("status", "--json"))["pauses"] == []
    assert ctl("pause", "--site", "127.0.0.1").code == 0
    assert parsed(ctl("sites", "--json"))[0]["paused"] is True
    assert ctl("resume", "--site", "127.0.0.1").code == 0
    assert ctl("pause", "--host", "127.0.0.1").code == 0
    assert parsed(ctl("host", "127.0.0.1", "--json"))["next_fetch_in_s"] is None
    assert ctl("resume", "--host", "127.0.0.1").code == 0
    assert ctl("drain").code == 0
    assert "drain" in parsed(ctl("status", "--json"))["pauses"]
    assert ctl("resume").code == 0


def test_add_and_remove(ctl, running):
    url = running.url + "added"
    added = parsed(ctl("add", url, "--site", "127.0.0.1", "--json"))
    assert (added["site"], added["admitted"]) == ("127.0.0.1", 1)
    new = ("http://other.test/a", "--site", "other", "--delay", "60", "--depth", "0")
    assert ctl("add", *new).code == 2  # a public host, and no contact
    ended = ctl("add", "http://10.1.2.3/", "--site", "other", "--delay", "60", "--max-pages", "7")
    assert ended.code == 0
    assert "1 URL admitted to the new site other" in ended.out
    assert "warning: 10.1.2.3: 10.1.2.3 is not a public address" in ended.out
    other = next(site for site in parsed(ctl("sites", "--json")) if site["name"] == "other")
    assert (other["host_delay_s"], other["source"]) == (60.0, "socket")
    assert ctl("remove", "other").code == 0
    assert [site["name"] for site in parsed(ctl("sites", "--json"))] == ["127.0.0.1"]


REFUSED = [
    (("host", "nope.test"), "not known"),
    (("host", "../status"), ""),
    (("page", "not a url"), "not a URL"),
    (("page", "http://nope.test/"), "not known"),
    (("add", "ftp://nope.test/"), "scheme"),
    (("remove", "nope"), "no site nope"),
    (("pause", "--site", "nope"), "no site nope"),
    (("reload",), "no config file"),
]


def test_refused(ctl):
    for arguments, why in REFUSED:
        ended = ctl(*arguments)
        assert (ended.code, ended.out) == (2, ""), arguments
        assert ended.err.startswith("error: "), arguments
        assert why in ended.err


def test_shutdown_ends_the_daemon_and_its_socket(command, mirror):
    assert command("crawlctl", "shutdown", "--socket", mirror.socket).code == 0
    assert mirror.wait() == 0
    assert "never visited" in mirror.process.stdout.read_text()
    assert "stopped" in mirror.process.stderr.read_text()
    assert not mirror.socket.exists()


@pytest.mark.parametrize("options", [("--json",), ()])
def test_following_the_log(mirror, start, options):
    client = start("crawld.cli.crawlctl", "log", "-f", "--socket", mirror.socket, *options)
    first, second = wait_for_lines(client, client.stdout, "http", 2)
    mirror.process.send(signal.SIGTERM)  # it drains, then the client has no daemon
    assert client.wait() == 4
    assert client.stderr.read_text().startswith("error: ")
    assert "http://127.0.0.1" in first
    assert "http://127.0.0.1" in second
    assert first != second
    if options:
        assert json.loads(second)["visit_id"] > json.loads(first)["visit_id"]


def test_a_closed_pipe_is_no_error(running):
    reading, writing = os.pipe()
    os.close(reading)
    arguments = [sys.executable, "-m", "crawld.cli.crawlctl", "status", "--socket", running.socket]
    ended = subprocess.run(
        arguments, stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")
