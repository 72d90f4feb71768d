"""Frontier and visits compared with a model of dicts, after any order of calls."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from crawld.core.page import Grace, Outcome, PageState, next_state
from crawld.store import doctor, visit
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, load, page, refusal, site, unvisited
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.host import HostUpdate
from crawld.store.versions import body, version
from crawld.store.versions.response import StoredResponse
from crawld.store.visit import VisitRecord

HOSTS = ["a.example", "b.example", "c.example"]
SITES = [1, 2]

URLS = st.tuples(st.sampled_from(HOSTS), st.integers(0, 12))
CAPS = st.builds(
    Caps,
    per_site=st.dictionaries(st.sampled_from(SITES), st.integers(0, 12)),
    per_host=st.dictionaries(st.sampled_from(SITES), st.integers(0, 8)),
)
ANSWER = StoredResponse(status=200, http_version="HTTP/1.1", headers=b"")


class StoreMachine(RuleBasedStateMachine):
    """Runs each call on the file and on the model, and compares them."""

    pages = Bundle("pages")

    @initialize()
    def open(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "crawld.db"
        migrate.migrate(self.path)
        self.connection = open_connection(self.path)
        self.connection.execute("PRAGMA synchronous = OFF")  # no test cuts the power
        for name in ("one", "two"):
            site.upsert(self.connection, name, "{}", source="config", at=0.0)
        self.known = {}
        self.refused = 0
        self.now = 1000.0

    def teardown(self):
        if hasattr(self, "connection"):
            self.connection.close()
            self.folder.cleanup()

    def discovery(self, key, site_id, depth):
        host, number = key
        # Numbers 11 and 12 have the same hash: the later one gets its second key.
        return Discovery(
            url=f"https://{host}/{number}",
            url_hash=min(number, 11) - 5,
            site_id=site_id,
            host=host,
            origin=f"https://{host}",
            at=self.now,
            depth=depth,
        )

    def expect(self, keys, site_id, depth, caps):
        """Return the keys that the model adds; hosts in the order of their first key."""
        added = []
        ordered = sorted(keys, key=lambda key: [k[0] for k in keys].index(key[0]))
        for host, number in ordered:
            if (host, number) in self.known:
                model = self.known[host, number]
                model["depth"] = min(model["depth"], depth)
            elif self.capped(host, site_id, caps):
                self.refused += 1
            else:
                self.known[host, number] = {
                    "site": site_id,
                    "depth": depth,
                    "state": PageState.DISCOVERED,
                    "grace": Grace(),
                    "copies": [],
                    "visits": 0,
                    "at": None,
                }
                added.append((host, number))
        return added

    def capped(self, host, site_id, caps):
        in_site = sum(model["site"] == site_id for model in self.known.values())
        on_host = sum(key[0] == host for key in self.known)
        return in_site >= caps.per_site.get(site_id, 99) or on_host >= caps.per_host.get(
            site_id, 99
        )

    def add(self, new, added):
        keys = [(each.url.split("/")[2], int(each.url.split("/")[3])) for each in new]
        assert keys == added
        for key, each in zip(keys, new, strict=True):
            self.known[key]["id"] = each.page_id
        return multiple(*keys)

    @rule(
        target=pages,
        keys=st.lists(URLS, max_size=6),
        site_id=st.sampled_from(SITES),
        depth=st.integers(0, 3),
        caps=CAPS,
    )
    def discover(self, keys, site_id, depth, caps):
        found = [self.discovery(key, site_id, depth) for key in keys]
        added = self.expect(keys, site_id, depth, caps)
        return self.add(frontier.discover(self.connection, found, caps), added)

    @rule(
        target=pages,
        key=consumes(pages),
        outcome=st.sampled_from(Outcome),
        content=st.integers(0, 3),
        links=st.lists(URLS, max_size=3),
        caps=CAPS,
    )
    def visit(self, key, outcome, content, links, caps):
        self.now += 86_400.0
        model = self.known[key]
        if model["state"] in (PageState.EXCLUDED, PageState.SUSPENDED):
            return multiple(key)
        grace = model["grace"].after(outcome, self.now)
        state = next_state(model["state"], outcome, grace, self.now)
        copy = b"content %d " % content * 40
        record = VisitRecord(
            page_id=model["id"],
            visited_at=self.now,
            outcome=outcome,
            state=state,
            response=ANSWER,
            digest=b"%d" % content,
            body=body.encode(copy),
            grace=grace,
            host=HostUpdate(last_fetch_at=self.now),
            discoveries=[self.discovery(link, model["site"], 2) for link in links],
            caps=caps,
        )
        model |= {"state": state, "grace": grace, "visits": model["visits"] + 1, "at": self.now}
        if outcome is Outcome.CHANGED:
            model["copies"].append(copy)
        added = self.expect(links, model["site"], 2, caps)
        recorded = visit.record(self.connection, record)
        self.add(recorded.new_pages, added)
        return multiple(key, *added)

    @rule(key=pages, state=st.sampled_from([PageState.EXCLUDED, PageState.SUSPENDED]))
    def move(self, key, state):
        assert page.set_state(self.connection, self.known[key]["id"], state)
        self.known[key]["state"] = state

    @rule()
    def reopen(self):
        self.connection.close()
        self.connection = open_connection(self.path)
        self.connection.execute("PRAGMA synchronous = OFF")  # no test cuts the power

    @rule(key=pages)
    def read_copies(self, key):
        model = self.known[key]
        rows = version.list_versions(self.connection, model["id"])
        copies = [version.read_body(self.connection, row.version_id) for row in rows]
        assert copies == model["copies"][::-1]
        stored = page.for_visit(self.connection, model["id"])
        assert stored.version_id == (rows[0].version_id if rows else None)

    @invariant()
    def pages_are_those_of_the_model(self):
        if not hasattr(self, "known"):
            return
        rows = page.list_pages(self.connection, limit=1000)
        stored = {
            row.page_id: (row.site_id, row.depth, row.state, row.grace, row.visit_count)
            for row in rows
        }
        columns = ("site", "depth", "state", "grace", "visits")
        models = self.known.values()
        assert stored == {model["id"]: tuple(model[name] for name in columns) for model in models}

    @invariant()
    def counts_and_order_are_those_of_the_model(self):
        if not hasattr(self, "known"):
            return
        for state, count in frontier.counts(self.connection).items():
            assert count == sum(model["state"] is state for model in self.known.values())
        assert sum(refusal.totals(self.connection).values()) == self.refused
        models = self.known.values()
        back = [m for m in models if m["state"] in (PageState.VISITED, PageState.GONE)]
        loaded = load.load_revisits(self.connection, least=999)
        ids = [page_id for each in loaded for page_id in each.page_ids.tolist()]
        assert sorted(ids) == sorted(model["id"] for model in back)
        waiting = [
            each.page_id
            for _, host_id, site_id in load.load_waiting(self.connection)
            for each in unvisited.list_discovered(self.connection, host_id, site_id, 99)
        ]
        wanted = [model for model in models if model["state"] is PageState.DISCOVERED]
        assert sorted(waiting) == sorted(model["id"] for model in wanted)

    @rule()
    def the_doctor_finds_nothing(self):
        assert doctor.examine(self.path).findings == ()


StoreMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=25, print_blob=True)
TestStore = StoreMachine.TestCase
