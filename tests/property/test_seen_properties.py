"""Seen URLs compared with a dict, after any order of batches, modes, rollbacks and restarts."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crawld.core.seen import run
from crawld.core.seen.event import SeenMark
from crawld.core.seen.keys import URL_BITS
from crawld.core.seen.texts import TextBlock
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.seen import known, pending, seen, text
from crawld.store.seen.seen import SeenFile
from crawld.store.seen.seen_urls import SeenUrls

HOSTS = ["a.org", "b.org", "c.org:8080", "d.example"]
URLS = st.builds("https://{}/{}".format, st.sampled_from(HOSTS), st.integers(0, 60))
STRANGE = st.sampled_from(["", "/", "x", "a//b", "\0", "http://a.org/\n", "http://\ud800/é", "日"])
BATCHES = st.lists(URLS | STRANGE, max_size=30)
MARKS = st.sampled_from(list(SeenMark))
MEMORY = st.sampled_from([0, 8 * 40, 2**30])  # for no key, for forty, for all


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    """Make a few URLs divide, settle and split as millions do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending, "MIN_DIVIDED", 12)
        patch.setattr(pending, "MAX_UNDIVIDED", 25)
        patch.setattr(seen, "MIN_WAITING", 20)
        patch.setattr(run, "CHUNK_ENTRIES", 4)
        patch.setattr(text, "ROW_TEXTS", 5)
        yield


class SeenMachine(RuleBasedStateMachine):
    """Offers URLs to a file and to a dict."""

    @initialize(
        bits=st.sampled_from([0, 2, 5, URL_BITS]), seed=st.integers(0, 2**64 - 1), memory=MEMORY
    )
    def open(self, bits, seed, memory):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "crawld.db"
        migrate.migrate(self.path)
        self.connection = open_connection(self.path)
        self.connection.execute("PRAGMA synchronous = OFF")  # no test cuts the power
        self.seed, self.bits = seed, bits
        file = SeenFile(SeenFile.of(self.connection, seed).seed, bits)
        self.urls = SeenUrls.open(self.connection, file, memory)
        self.model = {}
        self.told = []

    def teardown(self):
        if hasattr(self, "connection"):
            self.connection.execute("BEGIN")
            self.told += seen.settle_all(self.connection).urls
            self.connection.execute("COMMIT")
            stored = list(known.urls_with_marks(self.connection))
            assert dict(stored) == self.model
            assert len(stored) == len(self.model)
            self.check_told()
            assert set(self.told) == set(self.model)
            self.connection.close()
            self.folder.cleanup()

    def check_told(self):
        assert len(self.told) == len(set(self.told))
        assert set(self.told) <= set(self.model)

    @rule(batches=st.lists(st.tuples(BATCHES, MARKS, st.booleans()), min_size=1, max_size=3))
    def commit(self, batches):
        self.connection.execute("BEGIN IMMEDIATE")
        for urls, mark, sets in batches:
            self.told += self.urls.offer(self.connection, urls, mark, sets=sets)
            for url in urls:
                if sets or url not in self.model:
                    self.model[url] = mark
        self.connection.execute("COMMIT")
        self.urls.committed()
        self.check_told()

    @rule(urls=BATCHES, mark=MARKS, sets=st.booleans())
    def roll_back(self, urls, mark, sets):
        self.connection.execute("BEGIN IMMEDIATE")
        self.urls.offer(self.connection, urls, mark, sets=sets)
        self.connection.execute("ROLLBACK")
        self.urls.rolled_back()

    @rule()
    def settle(self):
        self.connection.execute("BEGIN")
        self.told += seen.settle_all(self.connection).urls
        self.connection.execute("COMMIT")
        self.check_told()

    @rule(memory=MEMORY)
    def restart(self, memory):
        self.connection.close()
        self.connection = open_connection(self.path)
        self.connection.execute("PRAGMA synchronous = OFF")
        file = SeenFile(SeenFile.of(self.connection, self.seed ^ 1).seed, self.bits)
        assert file.seed == self.seed
        self.urls = SeenUrls.open(self.connection, file, memory)

    @rule(urls=BATCHES)
    def read(self, urls):
        assert known.marks(self.connection, self.urls.file, urls) == list(map(self.model.get, urls))

    @precondition(lambda self: hasattr(self, "urls") and self.urls.keys is not None)
    @invariant()
    def memory_knows_all(self):
        missing = self.urls.keys.missing(self.urls.file.keys(TextBlock.of(list(self.model))))
        assert not missing.any()


SeenMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=20)
TestSeen = SeenMachine.TestCase
