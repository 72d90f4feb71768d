"""Packed pages compared with a model of dicts, after any order of calls, kills and restarts."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from crawld.core import url as url_rules
from crawld.core.page import PageState
from crawld.store import doctor
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.engine.in_parts import finish
from crawld.store.frontier import frontier, packed, packed_block, packed_list, page, site
from crawld.store.frontier.frontier import Caps, Discovery
from crawld.store.frontier.packed import Packing, Portion
from crawld.store.frontier.packed_block import PackedPage
from crawld.store.versions import purge

HOSTS = ["a.example", "b.example"]
SITES = [1, 2]
KEYS = st.tuples(st.sampled_from(HOSTS), st.integers(0, 30))
PACKING = Packing(file_pages=0, host_pages=2)
CAPS = Caps(per_host={1: 25, 2: 25}, packing=PACKING)


def url_of(key):
    return f"https://{key[0]}/{key[1]}"


class PackedMachine(RuleBasedStateMachine):
    """Runs each call on the file and on the model, and compares them."""

    @initialize()
    def open(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "crawld.db"
        migrate.migrate(self.path)
        self.connect()
        for name in ("one", "two"):
            site.upsert(self.connection, name, "{}", source="config", at=0.0)
        self.known = {}
        self.purged = set()
        self.retired = set()
        self.entered = 0

    def connect(self):
        self.connection = open_connection(self.path)
        self.connection.execute("PRAGMA synchronous = OFF")

    def teardown(self):
        if hasattr(self, "connection"):
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

    def enter(self, key, site_id, depth, **more):
        self.entered += 1
        self.known[key] = {"site": site_id, "depth": depth, "entry": self.entered, **more}

    def expect(self, key, site_id, depth, *, waiting, needs_row):
        """Update the model for a link, a seed or a requisite."""
        model = self.known.get(key)
        if model is None:
            if key in self.purged:
                return
            on_host = sum(
                each[0] == key[0] and not self.known[each]["requisite"] for each in self.known
            )
            if needs_row != "requisite" and on_host >= 25:
                return
            packs = not needs_row and waiting[key[0]] >= PACKING.host_pages
            self.enter(key, site_id, depth, packed=packs, requisite=needs_row == "requisite")
            return
        owner = site_id if model["site"] in self.retired else model["site"]
        if (owner, min(depth, model["depth"])) != (model["site"], model["depth"]):
            self.enter(
                key,
                owner,
                min(depth, model["depth"]),
                packed=model["packed"],
                requisite=model["requisite"],
            )
        if needs_row:
            self.known[key]["packed"] = False
        if needs_row == "requisite" and key not in self.seeds:
            self.known[key]["requisite"] = True

    def waiting(self):
        return dict(self.connection.execute("SELECT host, pages_discovered FROM host"))

    def discover(self, keys, site_id, depth, *, needs_row="", kill=False, **more):
        waiting = dict.fromkeys(HOSTS, 0) | self.waiting()
        self.connection.execute("BEGIN")
        found = [self.discovery(key, site_id, depth, **more) for key in keys]
        frontier.discover(self.connection, found, CAPS)
        if kill:
            self.connection.execute("ROLLBACK")
            return
        self.connection.execute("COMMIT")
        for key in sorted(keys, key=lambda key: [k[0] for k in keys].index(key[0])):
            self.expect(key, site_id, depth, waiting=waiting, needs_row=needs_row)

    seeds: set

    @initialize()
    def no_seeds(self):
        self.seeds = set()

    @rule(
        keys=st.lists(KEYS, max_size=12),
        site_id=st.sampled_from(SITES),
        depth=st.integers(1, 3),
        kill=st.booleans(),
    )
    def links(self, keys, site_id, depth, kill):
        if site_id not in self.retired:
            self.discover(keys, site_id, depth, kill=kill)

    @rule(key=KEYS)
    def seed(self, key):
        self.discover([key], 1, 0, needs_row="seed", seed=True)
        if key in self.known:
            self.seeds.add(key)

    @rule(keys=st.lists(KEYS, max_size=3))
    def requisites(self, keys):
        self.discover(keys, 1, 3, needs_row="requisite", requisite=True)

    @rule(host=st.sampled_from(HOSTS), site_id=st.sampled_from(SITES), most=st.integers(1, 9))
    def unpack(self, host, site_id, most):
        host_id = self.connection.execute("SELECT host_id FROM host WHERE host = ?", (host,)).get
        if host_id is None:
            return
        newest = self.connection.execute("SELECT ifnull(max(page_id), 0) FROM page").get
        portion = Portion(host_id, site_id, most=most)
        made = finish(packed.unpack_in_parts(self.connection, portion))
        rows = self.connection.execute(
            "SELECT url, depth FROM page WHERE page_id > ? ORDER BY page_id", (newest,)
        ).fetchall()
        first = sorted(
            (model["depth"], model["entry"], key)
            for key, model in self.known.items()
            if model["packed"] and key[0] == host and model["site"] == site_id
        )
        assert made == len(rows)
        assert rows == [(url_of(key), depth) for depth, _, key in first[:made]]
        assert made >= min(most, len(first)) or self.has_void(host_id, site_id, made, first)
        for _, _, key in first[:made]:
            self.known[key]["packed"] = False

    def has_void(self, host_id, site_id, made, first):
        """Whether fewer came because entries were void; then a further call brings them."""
        return (
            made < len(first) and packed.first_depth(self.connection, host_id, site_id) is not None
        )

    @rule(key=KEYS)
    def purge(self, key):
        known = purge.purge(self.connection, url_of(key), 2000.0).known
        assert known == (self.known.pop(key, None) is not None)
        self.purged.add(key)
        self.seeds.discard(key)
        for frame, count in self.connection.execute("SELECT entries, pages FROM packed_block"):
            assert url_of(key) not in {each.url for each in packed_block.unpack(frame, count)}

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
        rows = {url: True for (url,) in self.connection.execute("SELECT url FROM page")}
        waiting = [each.url for each in packed_list.list_packed(self.connection, after=0, limit=99)]
        assert len(waiting) == len(set(waiting))
        assert not rows.keys() & set(waiting)
        assert {url_of(key): not model["packed"] for key, model in self.known.items()} == (
            rows | dict.fromkeys(waiting, False)
        )

    @invariant()
    def each_page_is_found_and_listed(self):
        for key, model in self.known.items():
            url = url_of(key)
            record = page.by_url(self.connection, url)
            assert (record.url, record.depth, record.site_id) == (
                url,
                model["depth"],
                model["site"],
            )
            assert (record.page_id >= packed_list.FIRST_NUMBER) == model["packed"]
        listed, after = [], 0
        while part := page.list_pages(self.connection, after=after, limit=3):
            listed += [each.url for each in part]
            after = part[-1].page_id
        assert sorted(listed) == sorted(
            url_of(key) for key, model in self.known.items() if not model["requisite"]
        )

    @invariant()
    def the_counters_and_keys_are_right(self):
        for check in doctor.CHECKS:
            assert self.connection.execute(check.counting).get == 0, check.kind
        [count] = [frontier.counts(self.connection)[PageState.DISCOVERED]]
        assert count == sum(not model["requisite"] for model in self.known.values())


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(packed_block, "BLOCK_PAGES", 5)
    monkeypatch.setattr(packed_block, "MAX_TAILS", 3)


def short_hash(url):
    """Return the same hash for each two URLs of a host."""
    return int(url.rsplit("/", 1)[1]) // 2


class CollidingMachine(PackedMachine):
    """The same for URLs of which each two have one hash."""

    @initialize()
    def shorten(self):
        self.patched = pytest.MonkeyPatch()
        for module in (url_rules, packed, frontier):
            self.patched.setattr(module, "url_hash", short_hash)

    def teardown(self):
        if hasattr(self, "patched"):
            self.patched.undo()
        super().teardown()


CASE_SETTINGS = settings(max_examples=40, stateful_step_count=25, deadline=None)
PackedMachine.TestCase.settings = CASE_SETTINGS
CollidingMachine.TestCase.settings = CASE_SETTINGS
TestPackedPages = PackedMachine.TestCase
TestCollidingPages = CollidingMachine.TestCase


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
    assert packed_block.unpack(packed_block.pack(pages, 1), len(pages)) == pages
