"""`crawld run -c FILE`: a service with a reloadable config."""

import json
import signal

from tests.e2e.cli.conftest import wait_for_lines

CONFIG = """\
[daemon]
db = "{db}"
log_level = "{level}"
[[site]]
name = "sim"
seeds = ["http://127.0.0.1:{port}/"]
host_delay_s = {delay_s}
allow_private = true
"""


def logged(process, event):
    """Wait for a log event and return its fields."""
    [line] = wait_for_lines(process, process.stderr, event)
    return json.loads(line)


def test_run_reload_and_drain(command, simweb_port, start, tmp_path):
    config, db = tmp_path / "c.toml", tmp_path / "c.db"

    def write(**changed):
        fields = {"db": db, "port": simweb_port, "level": "info", "delay_s": 5.0} | changed
        config.write_text(CONFIG.format(**fields))

    write()
    process = start("crawld.cli.main", "run", "-c", config)
    assert logged(process, "started")["socket"] == str(db.with_suffix(".sock"))
    write(delay_s=7.0)
    changed = json.loads(command("crawlctl", "reload", "--db", db, "--json").out)["changed"]
    assert any("host_delay_s" in key for key in changed)
    write(delay_s="x")
    process.send(signal.SIGHUP)
    assert logged(process, "reload_refused")["level"] == "error"
    sites = json.loads(command("crawlctl", "sites", "--db", db, "--json").out)
    assert sites[0]["host_delay_s"] == 7.0
    write(delay_s=7.0, level="error")
    assert command("crawlctl", "reload", "--db", db).code == 0
    assert process.end() == 0
    # With the new level, draining and stopping are not logged.
    assert "stopped" not in process.stderr.read_text()


def test_the_socket_option_and_the_environment_override_the_config(
    command, simweb_port, start, tmp_path, monkeypatch
):
    config, db = tmp_path / "c.toml", tmp_path / "c.db"
    fields = {"db": db, "port": simweb_port, "level": "info", "delay_s": 5.0}
    config.write_text(CONFIG.format(**fields))
    named, of_environment = tmp_path / "named.sock", tmp_path / "environment.sock"
    monkeypatch.setenv("CRAWLD_SOCKET", str(of_environment))
    for arguments, socket in (((), of_environment), (("--socket", named), named)):
        process = start("crawld.cli.main", "run", "-c", config, *arguments)
        assert logged(process, "started")["socket"] == str(socket)
        assert command("crawlctl", "status", "--socket", socket).code == 0
        assert command("crawlctl", "reload", "--socket", socket).code == 0
        process.end()
