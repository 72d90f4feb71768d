"""SIGKILL while URLs are merged: each batch is in the file whole or not at all."""

import subprocess
import sys
from contextlib import closing

import pytest

from crawld.core.seen.event import SeenMark
from crawld.store import doctor
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.seen import known, seen
from crawld.store.seen.seen import SeenFile

BATCH_URLS = 20_000

OFFER = """
import sys
from pathlib import Path
from crawld.core.seen.event import SeenMark
from crawld.store.engine.connection import open_connection
from crawld.store.seen import pending, seen
from crawld.store.seen.seen import SeenFile
from tests.e2e.test_seen_kill import batch

seen.MIN_WAITING = 30_000
connection = open_connection(Path(sys.argv[1]))
file = SeenFile.of(connection, 1)
for number in range(int(sys.argv[2]), 1_000_000):
    with connection:
        seen.take(connection, file, batch(number), SeenMark.WAITING)
    print(number, flush=True)
"""


def batch(number):
    """Return URLs of which half are in the batch before."""
    first = number * BATCH_URLS // 2
    return [f"https://h{n % 300}.org/{n}" for n in range(first, first + BATCH_URLS)]


@pytest.mark.parametrize("reports", [1, 4])
def test_a_batch_is_stored_whole_or_not_at_all(tmp_path, reports):
    path = tmp_path / "crawld.db"
    migrate.migrate(path)
    done = 0
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", OFFER, str(path), str(done)], stdout=subprocess.PIPE, text=True
        ) as process:
            lines = [process.stdout.readline() for _ in range(reports)]
            process.kill()
            lines += process.stdout.read().splitlines(keepends=True)
        # A batch may be committed and not reported; the next life offers it again.
        done = max(int(line) for line in lines if line.endswith("\n")) + 1
    with closing(open_connection(path)) as connection:
        file = SeenFile.of(connection, 2)
        seen.settle_all(connection)
        found = [url for url, _ in known.urls_with_marks(connection)]
        reported = {url for number in range(done) for url in batch(number)}
        assert len(found) == len(set(found))
        assert set(found) in (reported, reported | set(batch(done)))
        assert known.marks(connection, file, batch(0)[:2]) == [SeenMark.WAITING] * 2
    assert doctor.examine(path).findings == ()
