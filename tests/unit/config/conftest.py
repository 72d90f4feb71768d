"""Config files of tests, and the messages that refuse them."""

import pytest

from crawld.config.load import load
from crawld.errors import ConfigError


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file of the config and returns its path."""

    def write(text, name="crawld.toml", mode=0o600):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    return write


def refusal(path):
    with pytest.raises(ConfigError) as caught:
        load(path)
    return str(caught.value)
