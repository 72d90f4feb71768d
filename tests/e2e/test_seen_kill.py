"""SIGKILL while links get their verdict: each batch is in the file whole or not at all."""

import subprocess
import sys
from contextlib import closing

import pytest

from crawld.store import doctor
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, packed_list, site, verdicts
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.packed import Packing

BATCH_URLS = 4_000
CAPS = Caps(packing=Packing(file_pages=0))

OFFER = """
import sys
from pathlib import Path
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, verdicts
from crawld.store.seen import pending, seen
from tests.e2e.test_seen_kill import CAPS, batch, discoveries

seen.MIN_WAITING = 10_000
pending.DIVIDED_AT_ONCE = 1_000
connection = open_connection(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), 1_000_000):
    with connection:
        frontier.discover(connection, discoveries(batch(number)), CAPS)
    while True:
        with connection:
            if not seen.divide_some(connection):
                break
    for repository in seen.due(connection):
        with connection:
            verdicts.settle(connection, repository, CAPS)
    print(number, flush=True)
"""


def batch(number):
    """Return URLs of which half are in the batch before."""
    first = number * BATCH_URLS // 2
    return [f"https://h{n % 300}.org/{n}" for n in range(first, first + BATCH_URLS)]


def discoveries(urls):
    return [Discovery.of(url, site_id=1, at=1e9, depth=2) for url in urls]


@pytest.mark.parametrize("reports", [1, 5])
def test_a_batch_is_stored_whole_or_not_at_all(tmp_path, reports):
    path = tmp_path / "crawld.db"
    migrate.migrate(path)
    with closing(open_connection(path)) as connection:
        site.upsert(connection, "one", "{}", source="config", at=0.0)
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
        verdicts.settle_all(connection, CAPS)
        found = [page.url for page in packed_list.list_packed(connection, after=0, limit=10**9)]
        reported = {url for number in range(done) for url in batch(number)}
        assert len(found) == len(set(found))
        assert set(found) in (reported, reported | set(batch(done)))
        assert frontier.discover(connection, discoveries(batch(0)), CAPS) == []
        assert verdicts.settle_all(connection, CAPS).new == []
    assert doctor.examine(path).findings == ()
