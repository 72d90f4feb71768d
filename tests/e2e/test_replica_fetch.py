"""Replicas as capacity: a host and its copy over real sockets, each at its own address.

The ledger of the simulated web shows which host got which requests and when; the database shows
which visits were fetched from a replica.
"""

from itertools import pairwise

import pytest

from crawld.simweb.change_process import STATIC, FixedChanges
from crawld.simweb.graph import SiteGraph
from crawld.simweb.site import SimSite
from tests.e2e.replica_run import DAY_S, ReplicaRun

DELAY_S = 0.04
PAGES = 24
KEPT, COPY = "a.test", "www.a.test"


class FetchRun(ReplicaRun):
    """A host, its copy, and a daemon that has found the copy and confirmed that it is fresh."""

    def visits_at_copy(self):
        """Return the host of each visit that was fetched from the copy."""
        return [
            host
            for (host,) in self.mirror.rows(
                "SELECT host FROM visit JOIN page USING (page_id) JOIN host USING (host_id)"
                " WHERE detail = ?",
                f"replica {COPY}",
            )
        ]

    def lease_rows(self):
        return self.mirror.rows("SELECT status, sampled, agreed, lag_s FROM replica")


@pytest.fixture
def start_setup(nursery, tmp_path):
    async def start(*, use_replicas, copy_changes=None, page_changes=lambda began: STATIC):
        made = FetchRun(tmp_path / f"{use_replicas}.db")
        began, graph = made.wall(), SiteGraph(PAGES, seed=1)
        made.copy = SimSite(
            (COPY,), graph, changes=lambda page: (copy_changes or page_changes)(began)
        )
        await made.start(
            nursery,
            SimSite((KEPT,), graph, changes=lambda page: page_changes(began)),
            made.copy,
            dns={KEPT: "127.0.0.1", COPY: "127.0.0.2"},
            site={"use_replicas": use_replicas},
            politeness={"host_delay_s": DELAY_S},
            replicas={"sample_every_s": 3_600.0, "prefer": [KEPT]},
            schedule={"min_revisit_s": 3_600.0},
        )
        await made.sample_once()
        await made.run_day()
        # A page is sampled, visited and compared.
        await made.sample_once()
        await made.sample_once()
        return made

    return start


async def test_an_idle_replica_takes_over_visits_within_every_delay(start_setup):
    alone, helped = await start_setup(use_replicas=False), await start_setup(use_replicas=True)
    without, shared = await alone.run_day(), await helped.run_day()
    assert alone.visits_at_copy() == []
    assert without == {KEPT: PAGES, COPY: 0}
    # The same pages cost the host fewer fetches, each with its delay.
    assert sum(shared.values()) == PAGES
    assert shared[COPY] >= PAGES // 4
    assert helped.visits_at_copy() == [KEPT] * shared[COPY]
    for _ in range(2):
        more = await helped.run_day()
        assert sum(more.values()) == PAGES
    # No page is fetched from the copy twice in a row.
    rows = helped.mirror.rows(
        "SELECT page_id, detail FROM visit JOIN page USING (page_id) JOIN host USING (host_id)"
        " WHERE host = ? ORDER BY page_id, visited_at",
        KEPT,
    )
    for (page, detail), (after, next_detail) in pairwise(rows):
        assert page != after or not (detail == next_detail == f"replica {COPY}")
    for each in (alone, helped):
        assert each.web.ledger.violations(delay_s=DELAY_S) == []
        assert each.web.ledger.violations(delay_s=DELAY_S, by="address") == []


async def test_changes_fetched_from_the_replica_become_versions_of_the_page(start_setup):
    w = await start_setup(
        use_replicas=True, page_changes=lambda began: FixedChanges([began + 2 * DAY_S])
    )
    await w.run_day()
    rows = w.mirror.rows(
        "SELECT outcome, version_id FROM visit WHERE detail = ?", f"replica {COPY}"
    )
    assert len(rows) >= PAGES // 4
    assert all(outcome == "changed" and version for outcome, version in rows)
    await w.run_day()
    # Later fetches from the host agree: the lease stays.
    assert w.lease_rows() == [("pruned", 3, 3, 0.0)] or w.lease_rows()[0][1] > 3


async def test_a_lagging_replica_loses_its_lease(start_setup):
    w = await start_setup(
        use_replicas=True,
        page_changes=lambda began: FixedChanges([began + 2 * DAY_S + 3 * 3_600.0]),
        copy_changes=lambda began: STATIC,
    )
    assert w.lease_rows()[0][1] > 0
    for _ in range(3):
        await w.run_day()
    # The copy showed an old text; it still did when it was fetched again.
    assert w.lease_rows() == [("pruned", 0, 0, None)]
    before = w.page_requests()[COPY]
    await w.run_day()
    assert w.page_requests()[COPY] == before
    # The stored versions are those of the host.
    kept = w.mirror.rows(
        "SELECT page.change_count FROM page JOIN host USING (host_id) WHERE host = ?", KEPT
    )
    assert kept == [(2,)] * PAGES


async def test_the_replicas_robots_txt_is_obeyed(start_setup):
    w = await start_setup(use_replicas=True)
    await w.run_day()
    before, visits_at_copy = len(w.web.targets(COPY)), len(w.visits_at_copy())
    barred = tuple(f"/wiki/{letter}" for letter in "ABCDEFGHIJKL")
    w.copy.robots = "User-agent: *\n" + "".join(f"Disallow: {each}\n" for each in barred)
    for _ in range(3):
        await w.run_day()
    asked = w.web.targets(COPY)[before:]
    assert [target for target in asked if target.startswith(barred)] == []
    assert len(w.visits_at_copy()) > visits_at_copy
