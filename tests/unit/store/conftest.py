import pytest

from tests.unit.store.rows import opened_file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "crawld.db"


@pytest.fixture
def connection(path):
    """A migrated file with one site, open for writing, each statement its own transaction."""
    with opened_file(path) as opened:
        yield opened
