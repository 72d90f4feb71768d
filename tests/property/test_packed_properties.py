"""Packed pages compared with a model of dicts, after any order of calls, kills and restarts."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from crawld.core.page import PageState
from crawld.core.seen.key_set import KEY_BYTES
from crawld.core.seen.texts import TextBlock
from crawld.store import doctor
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.engine.in_parts import finish
from crawld.store.frontier import (
    frontier,
    packed,
    packed_block,
    packed_list,
    packed_shared,
    page,
    site,
    verdicts,
)
from crawld.store.frontier import host as host_rows
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.packed import Packing, Portion
from crawld.store.frontier.packed_block import PackedPage
from crawld.store.frontier.shared_entries import SharedEntries, SharedQueues
from crawld.store.seen import seen
from crawld.store.seen.key_memory import KeyMemory
from crawld.store.seen.seen import SeenFile
from crawld.store.versions import purge

HOSTS = ["a.example", "b.example"]
SITES = [1, 2]
KEYS = st.tuples(st.sampled_from(HOSTS), st.integers(0, 30))
MOST = 25
CAPS = Caps(per_host={1: MOST, 2: MOST}, packing=Packing(file_pages=0))


def url_of(key):
    return f"https://{key[0]}/{key[1]}"


class PackedMachine(RuleBasedStateMachine):
    """Runs each call on the file and on the model, and compares them.

    The model: `rows` and `packed` have the site, depth and order of entry of each known page; a
    page that is in both is a row. `links` are those that wait.
    """

    url_bits = 48
    caps = CAPS

    @initialize()
    def open(self):
        self.patched = pytest.MonkeyPatch()
        self.patched.setattr(SeenFile, "of", lambda _: SeenFile(7, url_bits=self.url_bits))
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "crawld.db"
        migrate.migrate(self.path)
        self.connect()
        for name in ("one", "two"):
            site.upsert(self.connection, name, "{}", source="config", at=0.0)
        self.rows, self.packed, self.links = {}, {}, []
        self.purged, self.retired = set(), set()
        self.entered = 0

    def connect(self):
        self.connection = open_connection(self.path)
        self.connection.execute("PRAGMA synchronous = OFF")

    def teardown(self):
        if hasattr(self, "connection"):
            self.patched.undo()
            self.connection.close()
            self.folder.cleanup()

    def discovery(self, key, site_id, depth, **more):
        return Discovery(
            url=url_of(key),
            url_hash=frontier.url_hash(url_of(key)),
            site_id=site_id,
            host=key[0],
            origin=f"https://{key[0]}",
            at=1000.0,
            depth=depth,
            **more,
        )

    def place(self, site_id, depth):
        self.entered += 1
        return {"site": site_id, "depth": depth, "entry": self.entered, "requisite": False}

    def found_again(self, page, site_id, depth):
        owner = site_id if page["site"] in self.retired else page["site"]
        return owner, min(depth, page["depth"])

    def count(self, table, host=None):
        if table == "host":
            row = host_rows.by_name(self.connection, host)
            return row.page_count if row is not None else 0
        return self.connection.execute(f"SELECT total(page_count) FROM {table}").get

    @rule(
        keys=st.lists(KEYS, max_size=12),
        site_id=st.sampled_from(SITES),
        depth=st.integers(1, 3),
        kill=st.booleans(),
    )
    def find_links(self, keys, site_id, depth, kill):
        if site_id in self.retired:
            return
        self.room = {host: MOST - self.count("host", host) for host in HOSTS}
        full = {host: room <= 0 for host, room in self.room.items()}
        self.connection.execute("BEGIN")
        found = [self.discovery(key, site_id, depth) for key in keys]
        frontier.discover(self.connection, found, self.caps)
        self.connection.execute("ROLLBACK" if kill else "COMMIT")
        waiting = []
        for key in keys:
            if key in self.rows:
                if not kill:
                    row = self.rows[key]
                    row["site"], row["depth"] = self.found_again(row, site_id, depth)
            elif key not in self.purged and not full[key[0]]:
                waiting.append(key)
        self.offer(waiting, site_id, depth, kill)

    def offer(self, keys, site_id, depth, kill):
        """Let links wait in the model."""
        self.links += [] if kill else [(key, site_id, depth) for key in keys]

    @rule()
    def divide(self):
        """Keys of links are computed; the texts of those that were told are left behind."""
        seen.divide_some(self.connection)

    @rule(kill=st.booleans())
    def settle(self, kill):
        room = {host: MOST - self.count("host", host) for host in HOSTS}
        self.connection.execute("BEGIN")
        verdicts.settle_all(self.connection, self.caps)
        self.connection.execute("ROLLBACK" if kill else "COMMIT")
        if kill:
            return
        nearest = {}
        for at, (key, site_id, depth) in enumerate(self.links):
            if key not in nearest or depth < nearest[key][2]:
                nearest[key] = (at, site_id, depth)
        moved, new = [], []
        for key, (at, site_id, depth) in nearest.items():
            known = self.packed.get(key)
            if known is None:
                if key not in self.purged:
                    new.append((site_id, at, key, depth))
                continue
            place = self.found_again(known, site_id, depth)
            if place != (known["site"], known["depth"]):
                moved.append((at, key, place))
        for site_id, _, key, depth in sorted(new):
            if room[key[0]] > 0:
                room[key[0]] -= 1
                self.packed[key] = self.place(site_id, depth)
        for _, key, place in sorted(moved):
            self.packed[key] = self.place(*place)
        self.links = []

    @rule(key=KEYS, requisite=st.booleans())
    def need_row(self, key, requisite):
        site_id = 1
        full = self.count("host", key[0]) >= MOST
        more = {"requisite": True} if requisite else {"seed": True}
        frontier.discover(self.connection, [self.discovery(key, site_id, 0, **more)], self.caps)
        row = self.rows.get(key)
        if row is not None:
            row["site"], row["depth"] = self.found_again(row, site_id, 0)
            row["requisite"] |= requisite and not row.get("seed", False)
            row["seed"] = row.get("seed", False) or not requisite
        elif key not in self.purged and (requisite or not full):
            self.rows[key] = self.place(site_id, 0) | more

    @rule(host=st.sampled_from(HOSTS), site_id=st.sampled_from(SITES), most=st.integers(1, 9))
    def unpack(self, host, site_id, most):
        host_id = self.connection.execute("SELECT host_id FROM host WHERE host = ?", (host,)).get
        if host_id is None:
            return
        newest = self.connection.execute("SELECT ifnull(max(page_id), 0) FROM page").get
        made = finish(packed.unpack_in_parts(self.connection, Portion(host_id, site_id, most=most)))
        rows = self.connection.execute(
            "SELECT url, depth, site_id FROM page WHERE page_id > ? ORDER BY page_id", (newest,)
        ).fetchall()
        assert made == len(rows) <= most
        of = {url_of(key): key for key in self.packed}
        keys = [of[url] for url, _, _ in rows]
        assert not set(keys) & self.rows.keys()
        waiting = [
            (page["depth"], page["entry"], key)
            for key, page in self.packed.items()
            if key not in self.rows and key[0] == host and page["site"] == site_id
        ]
        if site_id not in self.retired:
            # A retired site may still get pages that wait elsewhere.
            assert keys == [key for *_, key in sorted(waiting)][:made]
        for key, (_, depth, owner) in zip(keys, rows, strict=True):
            self.rows[key] = self.packed[key] | {"depth": depth, "site": owner}

    @rule(key=KEYS)
    def purge(self, key):
        known = purge.purge(self.connection, url_of(key), 2000.0).known
        had = self.rows.pop(key, None), self.packed.pop(key, None)
        assert known == (had != (None, None))
        self.links = [link for link in self.links if link[0] != key]
        self.purged.add(key)
        for frame, count in self.connection.execute("SELECT entries, pages FROM packed_block"):
            assert url_of(key) not in packed_block.unpack(frame, count).texts.decoded()
        for queues, frame in self.connection.execute("SELECT queues, entries FROM shared_block"):
            entries = SharedEntries.unpack(SharedQueues.unpack(queues), frame)
            assert url_of(key) not in entries.columns.texts.decoded()

    @rule()
    def retire(self):
        site.retire(self.connection, "two")
        self.retired.add(2)

    @rule()
    def restart(self):
        self.connection.close()
        self.connect()

    @invariant()
    def each_page_is_packed_or_a_row(self):
        rows = {url for (url,) in self.connection.execute("SELECT url FROM page")}
        waiting = [each.url for each in packed_list.list_packed(self.connection, after=0, limit=99)]
        assert len(waiting) == len(set(waiting))
        assert rows == set(map(url_of, self.rows))
        assert set(waiting) == set(map(url_of, self.packed.keys() - self.rows.keys()))

    @invariant()
    def each_page_is_found(self):
        for key, model in (self.packed | self.rows).items():
            record = page.by_url(self.connection, url_of(key))
            expected = (url_of(key), model["depth"], model["site"])
            assert (record.url, record.depth, record.site_id) == expected
            assert (record.page_id >= packed_list.FIRST_NUMBER) == (key not in self.rows)

    @invariant()
    def the_counters_are_right(self):
        assert doctor.contradictions(self.connection) == []
        count = frontier.counts(self.connection)[PageState.DISCOVERED]
        rows = sum(not row["requisite"] for row in self.rows.values())
        # Until its turn comes, an entry whose page has got a row besides is counted.
        assert len(self.packed.keys() - self.rows.keys()) + rows <= count
        assert count <= len(self.packed) + rows


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(packed_block, "BLOCK_PAGES", 5)
    monkeypatch.setattr(packed_block, "MAX_TAILS", 3)
    monkeypatch.setattr(packed_shared, "SHARED_PAGES", 4)
    monkeypatch.setattr(packed_shared, "OWN_PAGES", 7)
    monkeypatch.setattr(packed_shared, "FAN_IN", 2)
    monkeypatch.setattr(packed_shared, "MAX_RUN", 20)
    monkeypatch.setattr(verdicts, "FEW_HOSTS", 0)


class CollidingMachine(PackedMachine):
    """The same for URLs that all have the key of their host."""

    url_bits = 0


class MemoryMachine(PackedMachine):
    """The same with the keys in memory, until there are forty: what is new is packed at once."""

    def connect(self):
        super().connect()
        memory = KeyMemory(KEY_BYTES * 40)
        memory.load(self.connection)
        self.caps = replace(CAPS, packing=replace(CAPS.packing, keys=memory))
        self.is_loaded = memory.keys is not None
        known = (
            self.connection.execute("SELECT host FROM host").fetchall() if self.is_loaded else []
        )
        self.remembered = {
            (host, number)
            for (host,) in known
            for number in range(31)
            if not self.is_missing(memory, (host, number))
        }

    def is_missing(self, memory, key):
        file = SeenFile.of(self.connection)
        return bool(memory.keys.missing(file.keys(TextBlock.of([url_of(key)])))[0])

    def offer(self, keys, site_id, depth, kill):
        new = [key for key in dict.fromkeys(keys) if self.is_loaded and key not in self.remembered]
        self.remembered |= set(new)
        if len(self.remembered) > 40:
            self.is_loaded = False
        if kill:
            return
        packed_now = set()
        for key in new:
            if self.room[key[0]] > 0:
                self.room[key[0]] -= 1
                self.packed[key] = self.place(site_id, depth)
                packed_now.add(key)
        refused = set(new) - packed_now
        # Of a refused URL one link is dropped, others to it wait.
        for key in keys:
            if key in refused:
                refused.discard(key)
            else:
                self.links.append((key, site_id, depth))


CASE_SETTINGS = settings(max_examples=40, stateful_step_count=25, deadline=None)
PackedMachine.TestCase.settings = CASE_SETTINGS
CollidingMachine.TestCase.settings = CASE_SETTINGS
MemoryMachine.TestCase.settings = CASE_SETTINGS
TestPackedPages = PackedMachine.TestCase
TestCollidingPages = CollidingMachine.TestCase
TestPagesWithKeysInMemory = MemoryMachine.TestCase


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            PackedPage,
            st.text(max_size=40),
            st.floats(allow_nan=False),
            st.integers(0, 2**62),
        ),
        max_size=20,
    )
)
def test_a_block_holds_its_pages(pages):
    assert packed_block.unpack(packed_block.pack(pages, 1), len(pages)).pages() == pages
