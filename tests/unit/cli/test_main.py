"""`crawld`: help, usage errors, late imports."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from crawld.cli import main

COMMANDS = sorted(each.name or each.callback.__name__ for each in main.app.registered_commands)


def test_every_documented_command_exists():
    documented = "backup bench check-config demo doctor init lab migrate mirror restore run version"
    assert set(documented.split()) <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help(command, name):
    ended = command("crawld", name, "--help")
    assert ended.code == 0
    assert "Usage" in ended.out


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("mirror",),
        ("mirror", "http://127.0.0.1/", "--delay", "-1"),
        ("run",),
        ("backup",),
        ("restore",),
    ],
)
def test_wrong_usage(command, arguments):
    assert command("crawld", *arguments).code == 2


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("run", "-c", "nope.toml"), "nope.toml"),
        (("mirror", "https://example.org/"), "--contact"),
        (("mirror", "ftp://example.org/"), "scheme"),
        (("mirror", "http://127.0.0.1/", "--db", "nope/x.db"), "nope/x.db"),
        (("mirror", "http://127.0.0.1/", "--socket", "s" * 120), "socket"),
        (("demo", "--db", "notes.txt"), "exists"),
        (("migrate", "--db", "nope.db"), "nope.db"),
        (("migrate", "--db", "notes.txt"), "not"),
        (("doctor", "--db", "nope.db"), "nope.db"),
        (("doctor", "--db", "notes.txt"), "not"),
        (("backup", "copy.db", "--db", "nope.db"), "nope.db"),
        (("restore", "copy.db", "--db", "nope.db"), "copy.db"),
    ],
)
def test_errors_name_their_cause(command, arguments, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("not a database, and long enough to be read\n" * 100)
    ended = command("crawld", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert why in ended.err


def test_version(command):
    assert command("crawld", "version").out == f"crawld {version('crawld')}\n"


def test_check_config_and_init(command, tmp_path):
    assert command("crawld", "init", tmp_path).code == 0
    assert command("crawld", "check-config", tmp_path / "crawld.toml").code == 0
    (tmp_path / "crawld.toml").write_text("odd = 1\n")
    assert command("crawld", "check-config", tmp_path / "crawld.toml").code == 2


def test_help_imports_no_heavy_library():
    started = [sys.executable, "-X", "importtime", "-m", "crawld.cli.main", "--help"]
    shown = subprocess.run(started, capture_output=True, text=True, check=True)
    imported = {line.split("|")[-1].strip() for line in shown.stderr.splitlines()}
    assert "typer" in imported
    assert not imported & {"trio", "apsw", "httpx", "numpy", "selectolax", "fastapi", "matplotlib"}
