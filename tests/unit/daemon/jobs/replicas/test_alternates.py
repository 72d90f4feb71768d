"""A page that is not as that of the canonical host rests under another host that shows its text."""

from dataclasses import replace

import pytest

from crawld.bench.replica_rounds.job_stand_ins import replicas_job
from crawld.core.content.fingerprint import cleaned_digest, sketch
from crawld.core.page import Outcome
from crawld.core.replica.canonical import HostProfile
from crawld.core.replica.verdict import PairEvidence
from crawld.core.why.replica_words import replica_words
from crawld.daemon.api.replica_views import replica_facts
from crawld.daemon.jobs.replicas.plan import PlanInput
from crawld.daemon.jobs.replicas.planner import plan
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.replica import pages, replica, survey
from crawld.store.replica.replica import ReplicaRow
from tests.unit.store.rows import NOW, changed, found, unlike

KEPT, SECOND, THIRD = "a.test", "web2.a.test", "web3.a.test"
PAIR = PairEvidence(names=("", ""), pages=(40, 40), common=40, compared=40, equal=40)
PAGES, HOUR_S = 24, 3_600.0
STALE, ONLY = range(16, 20), range(20, PAGES)
"""Pages that the canonical host shows as they were once, and pages that it does not have."""


class Machines:
    """Three machines of one site; the one that is kept has old pages, and lacks some."""

    def __init__(self, database):
        self.database, self.now, self.resting = database, NOW, {}
        self.job, self.requested = replicas_job(database, 1, lambda: self.now, 3)
        self.texts, self.page_ids = {}, {}

    async def fill(self):
        await self.database.write(site.upsert, "web", "{}", source="config", at=NOW)
        for host in (KEPT, SECOND, THIRD):
            numbers = [at for at in range(PAGES) if host != KEPT or at not in ONLY]
            new = await self.database.write(
                frontier.discover, [found(f"p/{at}", host=host) for at in numbers]
            )
            for at, page in zip(numbers, new, strict=True):
                self.page_ids[host, at] = page.page_id
                self.texts[host, at] = "old" if host == KEPT and at in STALE else "new"
        await self.visit_all()
        # The operator keeps it; the two others agree with more of the pages.
        await self.database.write(replica.prefer, 1)

    async def visit_all(self):
        await self.database.write(self.visit, [*self.page_ids])

    def visit(self, connection, wanted):
        for host, at in wanted:
            page_id, kind = self.page_ids[host, at], self.texts[host, at]
            if kind.startswith("http"):
                to = f"{kind}/p/{at}"
                visit.record(connection, unlike(page_id, Outcome.MOVED, self.now, redirect_url=to))
                continue
            text = " ".join(f"{kind}{at * 1_000 + place}" for place in range(60))
            known = {"cleaned_digest": cleaned_digest(text), "sketch": sketch(text)}
            visit.record(connection, changed(page_id, f"<p>{text}".encode(), self.now, **known))

    async def pass_hours(self, count):
        """Run the job each hour; all pages that do not rest are visited after it."""
        for _ in range(count):
            self.now += HOUR_S
            await self.job.run()
            self.requested.take()
            self.resting = await self.database.read(survey.resting_hosts)
            self.now += HOUR_S / 2
            awake = [key for key, page_id in self.page_ids.items() if page_id not in self.resting]
            await self.database.write(self.visit, awake)

    def under(self, host):
        """Return the host under which each page of a host rests."""
        return {
            at: self.resting[page_id]
            for (one, at), page_id in self.page_ids.items()
            if one == host and page_id in self.resting
        }


@pytest.fixture
async def machines(tmp_path):
    async with await Database.open(tmp_path / "w.db") as database:
        made = Machines(database)
        await made.fill()
        yield made


async def test_pages_rest_under_any_host_of_the_group_that_agrees(machines):
    await machines.pass_hours(3)
    assert machines.under(KEPT) == {}
    assert machines.under(SECOND) == dict.fromkeys(range(16), KEPT)
    alike = dict.fromkeys(range(16), KEPT) | dict.fromkeys((*STALE, *ONLY), SECOND)
    assert machines.under(THIRD) == alike
    [second, third] = await machines.database.read(replica.list_replicas)
    # What rests elsewhere is no agreement with the canonical host.
    assert (third.twins, third.agreeing, third.differing) == (20, 16, 4)
    assert (second.twins, second.agreeing, second.differing) == (20, 16, 4)


async def test_a_page_leaves_a_host_whose_page_rests_itself(machines):
    await machines.pass_hours(3)
    machines.texts[KEPT, 16] = "new"
    await machines.pass_hours(1)
    assert machines.under(THIRD)[16] == SECOND
    await machines.pass_hours(1)
    assert machines.under(SECOND)[16] == KEPT
    assert 16 not in machines.under(THIRD)
    await machines.pass_hours(1)
    assert machines.under(THIRD)[16] == KEPT


async def test_a_copy_that_differs_from_all_of_them_returns(machines):
    await machines.pass_hours(3)
    machines.texts |= {(THIRD, at): "third" for at in range(PAGES)}
    for _ in range(48):
        await machines.pass_hours(2)
        if not machines.resting.keys() & {machines.page_ids[THIRD, at] for at in range(PAGES)}:
            return
    raise AssertionError(machines.under(THIRD))


async def test_a_redirect_to_a_copy_that_rests_agrees_with_its_original(machines):
    machines.texts |= {(THIRD, at): f"https://{SECOND}" for at in (*range(8), *STALE)}
    await machines.visit_all()
    await machines.pass_hours(3)
    alike = dict.fromkeys(range(16), KEPT) | dict.fromkeys((*STALE, *ONLY), SECOND)
    assert machines.under(THIRD) == alike


async def test_readers_are_sent_to_the_page_under_which_a_page_rests(machines):
    await machines.pass_hours(3)
    sql = "UPDATE replica SET status = 'pruned'"
    await machines.database.write(lambda connection: connection.execute(sql).fetchall())
    for at, host in ((0, KEPT), (17, SECOND), (21, SECOND)):
        shown = await machines.database.read(pages.canonical_url, f"https://{THIRD}/p/{at}")
        assert shown == f"https://{host}/p/{at}"
    facts = await machines.database.read(replica_facts, 3, None, machines.page_ids[THIRD, 21])
    assert facts.canonical_url == f"https://{SECOND}/p/21"
    assert (facts.pages.resting, facts.pages.elsewhere) == (PAGES, 8)
    assert "24 of its 24 pages rest, since their text is that of a.test, or, of 8, that" in (
        replica_words(THIRD, facts, NOW)
    )


# --- a host between two others -------------------------------------------------------------------


def between(equal, kept, **more):
    """Return under which host the third rests: it shares pages with two, which share none.

    Each of these is kept already: another host rests under it.

    Args:
        equal: pages that agree with those of each.
        kept: the one under which it rests.
    """
    names = ("a.com", "www.a.com", "m.a.com", "web1.a.com", "web2.a.com")
    pairs = {(0, 2): equal[0], (1, 2): equal[1], (0, 3): 40, (1, 4): 40} | more.get("also", {})
    evidence = {
        pair: replace(PAIR, names=tuple(names[at] for at in pair), equal=count)
        for pair, count in pairs.items()
    }
    rows = [resting(3, 0), resting(4, 1), *([] if kept is None else [resting(2, kept)])]
    profiles = {
        at: HostProfile(name=name, preferred=name == more.get("preferred"))
        for at, name in enumerate(names)
    }
    given = PlanInput(
        evidence=evidence, operator_words={}, replicas=rows, profiles=profiles, hosts=5
    )
    return {each.server_id: each.canonical_id for each in plan(given)}[2]


def resting(copy, kept):
    return ReplicaRow(copy, "", kept, "", "partly", "", 0.0, 0.0, 0, 0.0, 0, 0, None, 0)


def test_a_host_does_not_move_to_and_fro_between_two_others():
    assert [between((20, 20), kept) for kept in (None, 0, 1)] == [0, 0, 1]
    assert [between((38, 20), kept) for kept in (None, 0, 1)] == [0, 0, 1]
    assert [between((20, 38), kept) for kept in (None, 0, 1)] == [1, 0, 1]
    # Where far more agree, and where the operator says so, it does.
    assert between((40, 20), 1) == 0
    assert between((20, 20), 1, preferred="a.com") == 0
    # It goes with its own host.
    assert between((20, 20), 1, also={(0, 1): 40}) == 0


# --- which hosts are alternates ------------------------------------------------------------------


def alternates_of(names, inlinks, linked, **more):
    """Return the alternates of each copy, among hosts of which some pairs share pages."""
    evidence = {
        pair: PairEvidence(
            names=tuple(names[at] for at in pair), pages=(40, 40), common=40, compared=40, equal=20
        )
        for pair in linked
    }
    profiles = {
        at: HostProfile(name=name, inlinks=links)
        for at, (name, links) in enumerate(zip(names, inlinks, strict=True))
    }
    given = PlanInput(
        evidence=evidence, operator_words=more.get("words", {}), replicas=(), profiles=profiles,
        hosts=len(names),
    )  # fmt: skip
    return {each.server_id: (each.canonical_id, each.alternates) for each in plan(given)}


EACH = [(0, 1), (0, 2), (1, 2)]


def test_of_two_machines_only_the_later_rests_under_the_other():
    names = (KEPT, SECOND, THIRD)
    assert alternates_of(names, (0, 0, 0), EACH) == {1: (0, ()), 2: (0, (1,))}
    # Of two that share few pages some may be the same, too.
    assert alternates_of(names, (0, 0, 0), EACH[:2]) == {1: (0, ()), 2: (0, (1,))}
    words = {(1, 2): "rejected"}
    assert alternates_of(names, (0, 0, 0), EACH, words=words)[2] == (0, ())


def test_the_public_site_does_not_rest_under_staging():
    names = ("staging.a.test", "web2.a.test", "a.test")
    assert alternates_of(names, (0, 0, 0), EACH) == {0: (2, (1,)), 1: (2, ())}


def test_a_branch_rests_under_those_that_are_better_known():
    names = tuple(f"{city}.example.com" for city in ("berlin", "paris", "turin", "lyon"))
    pairs = [(one, other) for one in range(4) for other in range(one + 1, 4)]
    found = alternates_of(names, (1, 9, 6, 3), pairs)
    assert found == {0: (1, (2, 3)), 2: (1, ()), 3: (1, (2,))}
    # None of the two others is ahead of the other by enough.
    assert alternates_of(names, (1, 9, 6, 6), pairs)[3] == (1, ())
