"""Fixtures of the tests of hint sources."""

import pytest

from crawld.store.engine.database import Database
from tests.unit.daemon.hints.scripted_wiki import World, prepare


@pytest.fixture
async def make(tmp_path):
    """Return a function that makes a world of some pages."""
    async with await Database.open(tmp_path / "w.db") as database:

        async def start(pages=60):
            known, numbers = await database.write(prepare, pages)
            return World(database, known, numbers)

        yield start
