"""Plug-ins for the daemon of a test, written as a person writes them: a file each."""

import textwrap

import pytest

HEAD = """
from crawld.plugins import *

CRAWLD_API = 1
"""


@pytest.fixture
def plugin(tmp_path, mirror):
    """Return a function that writes a plug-in and puts it into the config of the next daemons."""
    directory = tmp_path / "plugins"
    directory.mkdir()
    blocks = []

    def write(name, code, head=HEAD, **block):
        path = directory / f"{name}.py"
        path.write_text(head + textwrap.dedent(code))
        blocks.append({"name": name, **block})
        mirror.tables = {
            **mirror.tables,
            "daemon": {**mirror.tables.get("daemon", {}), "plugins_dir": str(directory)},
            "plugin": blocks,
        }
        return path

    return write
