"""The wheel: built from the checkout, installed in a new environment, used without the checkout."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Runs in the new environment: creates a database and prints where the code comes from.
OPEN = """
import importlib.resources, pathlib, sys
import crawld, trio
from crawld.store.engine.database import Database
from crawld.store.engine.migrate import status

path = pathlib.Path(sys.argv[1])

async def main():
    async with await Database.open(path):
        pass

trio.run(main)
print(pathlib.Path(crawld.__file__).parent)
print(importlib.resources.files("crawld") / "migrations")
print(status(path).version, len(status(path).pending))
"""


def run(*arguments, **options):
    done = subprocess.run(
        list(map(str, arguments)), capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The Python of a new environment with the wheel and this environment's libraries."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel)
    (site,) = (folder / "lib").glob("python*/site-packages")
    # Lines of a .pth add folders but do not process their .pth files: the checkout stays out.
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python


def test_holds_migrations_and_config(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    migrations = {f"crawld/migrations/{path.name}" for path in (ROOT / "migrations").iterdir()}
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "crawld").rglob("*.py")}
    assert migrations
    assert migrations | modules <= set(names)
    assert any(name.endswith(".data/data/etc/crawld/crawld.toml") for name in names)
    assert len(names) == len(set(names))
    assert not any(name.startswith(("tests/", "contrib/")) for name in names)


def test_opens_a_new_database_without_the_checkout(installed, tmp_path):
    path = tmp_path / "new.db"
    output = run(installed, "-I", "-c", OPEN, path, cwd=tmp_path).splitlines()
    package = Path(output[0])
    assert installed.parents[1] in package.parents
    assert (output[1], output[2]) == (
        str(package / "migrations"),
        f"{len(list((ROOT / 'migrations').glob('*.sql')))} 0",
    )
    assert path.stat().st_size > 0


@pytest.mark.parametrize("program", ["crawld", "crawlctl"])
def test_commands_are_installed(installed, tmp_path, program):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    output = run(installed.parent / program, "--help", cwd=tmp_path, env=environment)
    assert "Usage" in output


def test_config_is_installed(installed):
    shown = installed.parents[1] / "etc" / "crawld" / "crawld.toml"
    assert shown.read_bytes() == (ROOT / "etc" / "crawld.toml").read_bytes()
