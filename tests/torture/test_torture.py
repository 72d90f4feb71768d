"""A kill at each named point, and that the checks see what they are for."""

import json
import os
import subprocess
import sys
from contextlib import closing

import pytest

from crawld.store.engine.connection import open_connection
from tests.torture import work
from tests.torture.checks import Left, crawl, pruned, retained
from tests.torture.points import POINTS

KILLS = int(os.environ.get("CRAWLD_POINT_KILLS", str(len(POINTS))))


def test_kills_at_named_points_lose_nothing(tmp_path):
    result = tmp_path / "result.json"
    command = [sys.executable, "-m", "tests.torture", "--kills", str(KILLS), "--json", str(result)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(result.read_text())
    assert found["kills"] == KILLS
    assert set(found["by_point"]) == set(POINTS)
    assert found["acknowledged"] > 0


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    path = tmp_path_factory.mktemp("prepared") / "mirror.db"
    work.prepare(path, str)
    return path


@pytest.fixture
def left(prepared, tmp_path):
    path = tmp_path / "mirror.db"
    path.write_bytes(prepared.read_bytes())
    return Left(path, [], whole=False)


def change(left, sql):
    with closing(open_connection(left.path)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(sql)


def test_the_checks_pass_on_an_untouched_file(left):
    assert [*crawl(left), *pruned(left), *retained(left)] == []


def test_a_lost_visit_is_seen(left):
    found = [*crawl(Left(left.path, ["999999 1 1"], whole=False))]
    assert found == ["1 acknowledged rows of visit are lost: [999999]"]


def test_another_body_is_seen(left):
    change(left, "UPDATE version SET body_id = 1 WHERE version_id = 9")
    assert any("version 9 of" in fault and "another body" in fault for fault in crawl(left))


def test_half_of_a_pruned_host_is_seen(left):
    change(left, "UPDATE page SET state = 'suspended' WHERE host_id = 2 AND page_id % 2")
    assert any(fault.startswith("pages of the copy") for fault in pruned(left))


def test_a_lost_first_copy_is_seen(left):
    change(left, "DELETE FROM version WHERE version_id = 1")
    assert any("lost its first" in fault for fault in retained(left))
