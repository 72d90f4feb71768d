"""The `command` fixture, and helpers for tests of tables and views."""

import io

import pytest
from rich.console import Console

from crawld.core.page import PageState
from crawld.daemon.api.schemas import status as models
from crawld.store.engine import migrate
from tests.peer.in_process_command import command

__all__ = ["command"]

PAGES = dict.fromkeys(PageState, 0)


@pytest.fixture
def db(tmp_path):
    """An empty database."""
    migrate.migrate(tmp_path / "m.db")
    return tmp_path / "m.db"


def shown(renderable, *, color=False):
    """Return what a wide console prints."""
    out = io.StringIO()
    system = "standard" if color else None
    console = Console(file=out, width=1000, markup=False, force_terminal=color, color_system=system)
    console.print(renderable)
    return out.getvalue()


def host(name="docs.test", **changed):
    """Return the status of a host."""
    fields = {
        "host": name,
        "address": "127.0.0.1",
        "paused": False,
        "pages": PAGES,
        "pages_in_all": 0,
        "visit_count": 0,
        "change_count": 0,
        "failure_count": 0,
        "wire_bytes": 0,
        "last_fetch_at": None,
        "delay_s": 15.0,
        "backoff_level": 0,
        "next_fetch_in_s": 3.0,
    }
    return models.HostStatus(**(fields | changed))
