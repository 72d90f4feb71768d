"""A function that loads a plug-in from its text."""

import textwrap

import pytest

from crawld.config.plugin import PluginConfig
from crawld.plugin_host.loading import load_plugins

HEAD = "from crawld.plugins import *\n\nCRAWLD_API = 1\n"


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a plug-in into `plugins_dir`."""

    def write(name, code, head=HEAD):
        path = tmp_path / "plugins" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(head + textwrap.dedent(code))
        return path

    return write


@pytest.fixture
def load(tmp_path, write):
    """Return a function that loads plug-ins from their texts, by name."""

    def load(*, built_in=(), head=HEAD, blocks=None, **codes):
        for name, code in codes.items():
            write(name, code, head)
        configs = tuple(PluginConfig(name=name, **(blocks or {})) for name in codes)
        return load_plugins(configs, tmp_path / "plugins", dict(built_in))

    return load
