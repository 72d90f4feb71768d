"""Replicas in a whole daemon: found, suspended, sampled, withdrawn; the operator's word."""

import zlib
from itertools import pairwise

import pytest
import trio

from crawld.cli.replicas import replicas_table as shown
from crawld.core.replica.owners import without_port
from crawld.daemon.api.schemas.replicas import Replicas as Answer
from crawld.daemon.jobs.analyse_copies import AnalyseCopiesJob
from crawld.simweb.change_process import STATIC, poisson_process
from crawld.simweb.graph import SiteGraph
from crawld.simweb.message import build_response
from crawld.simweb.site import SimSite
from crawld.store.replica import pages as replica_pages
from crawld.store.replica import replica
from tests.daemon.control_client import control_client
from tests.daemon.harness import TIMEOUT_S, run_job, until, until_done

DAY_S = 86_400.0
PAGES = 20
WWW = "www.a.test"


def twin(host, *, pages=PAGES, seed=1, changes=lambda page: STATIC, **more):
    """Return a site with the content of every twin of the same seed."""
    return SimSite((host,), SiteGraph(pages, seed=seed), changes=changes, **more)


class World:
    """A daemon on some hosts, driven step by step."""

    def __init__(self, web, running, mirror, wall):
        self.web, self.running, self.mirror, self.wall = web, running, mirror, wall

    async def settle(self):
        """Wait until no visit is possible and everything is committed."""
        crawl = self.running.crawl
        await until_done(self.running, 1.0)
        await crawl.recorder.drain()

    async def round(self, shift_s=DAY_S):
        """Let time pass until all due pages were visited, then run the job."""
        self.wall.shift_s += shift_s
        await self.running.crawl.schedule.wake_all()
        await self.settle()
        await self.run_job()

    async def run_job(self):
        """Analyse the copies and run the job."""
        self.wall.shift_s += 120.0
        await AnalyseCopiesJob(self.running.context).run()
        return await self.run_replicas_job()

    async def run_replicas_job(self):
        """Run the job and return its result."""
        ran = await run_job(self.running, "replicas")
        assert ran.result == "done", ran.detail
        return ran.detail

    def control(self):
        return control_client(self.running)

    def replicas(self):
        rows = self.mirror.rows(
            "SELECT host.host, canonical.host, status, (SELECT count(*) FROM page"
            "  WHERE page.host_id = host.host_id AND state = 'suspended')"
            " FROM replica JOIN port_server USING (server_id) JOIN host USING (host_id)"
            " JOIN port_server AS kept ON kept.server_id = canonical_id"
            " JOIN host AS canonical ON canonical.host_id = kept.host_id"
        )
        return {row[0]: tuple(row[1:]) for row in rows}

    def asked(self, host):
        return sum(target != "/robots.txt" for target in self.web.targets(host))


@pytest.fixture
def world(serve, paused_daemon, mirror, wall):
    async def start(*sites, seeds=None, **tables):
        web = await serve(*sites, clock=wall)
        hosts = [site.hosts[0] for site in sites]
        # Audits would visit random pages.
        tables = {"jobs": {"audit_share": 0.0}, **tables}
        running = await paused_daemon(*(web.url(host=host) for host in hosts), **tables)
        # The run of the job at the start must not judge half-visited hosts.
        own = "SELECT 1 FROM job WHERE name = 'replicas' AND last_finished_at > 0"
        await until(lambda: mirror.rows(own), what="the first run of the job")
        running.set_paused(paused=False)
        made = World(web, running, mirror, wall)
        await made.settle()
        return made

    return start


async def test_a_replica_is_found_and_suspended(world):
    w = await world(twin("a.test"), twin(WWW))
    told = await w.run_job()
    assert told.startswith("2 hosts, 1 candidates, too few pairs to learn from")
    assert w.replicas() == {WWW: ("a.test", "pruned", PAGES)}
    before = w.asked(WWW)
    await w.round(5 * 3_600.0)
    assert w.asked(WWW) == before
    assert w.asked("a.test") >= 2 * PAGES
    read = w.running.database.read
    assert await read(replica_pages.canonical_url, w.web.url(host=WWW)) == w.web.url(host="a.test")
    assert await read(replica_pages.canonical_url, w.web.url("/only-there", WWW)) is None
    assert await read(replica_pages.canonical_url, w.web.url(host="a.test")) is None
    [status] = w.mirror.rows("SELECT pages_suspended FROM host WHERE host = ?", WWW)
    assert status == (PAGES,)


async def test_pages_that_only_the_replica_has_stay(world):
    rule = r"regex:http://a\.test:[0-9]+/wiki/[A-F].*"
    w = await world(
        twin("a.test"), twin(WWW), site={"exclude": [rule]}, replicas={"prefer": ["a.test"]}
    )
    await w.run_job()
    kept, status, rest = w.replicas()[WWW]
    states = dict(
        w.mirror.rows(
            "SELECT state, count(*) FROM page JOIN host USING (host_id) WHERE host = ?"
            " GROUP BY state",
            WWW,
        )
    )
    assert (kept, status) == ("a.test", "pruned")
    assert 0 < rest < 20
    assert states["visited"] == 20 - rest
    before = w.asked(WWW)
    await w.round()
    assert w.asked(WWW) - before >= 20 - rest


async def test_hosts_with_other_texts_are_no_replicas(world):
    w = await world(twin("a.test"), twin(WWW, seed=2), twin("b.test", seed=3))
    await w.run_job()
    assert w.replicas() == {}


async def test_hosts_of_different_owners_are_held_for_the_operator(world):
    w = await world(twin("a.test"), twin("b.test"))
    await w.run_job()
    [(host, (_, status, rest))] = w.replicas().items()
    assert (status, rest) == ("held", 0)
    [row] = await w.running.database.read(replica.list_replicas)
    names = sorted((row.host, row.canonical_host))
    assert row.reason == f"{names[0]} and {names[1]} may have different owners"
    async with w.control() as client:
        response = await client.post("/replicas/confirm", json={"host": host})
        assert response.status_code == 200, response.text
        response = await client.post("/replicas/prefer", json={"host": "b.test"})
        assert response.status_code == 200, response.text
        await w.run_replicas_job()
        assert w.replicas() == {"a.test": ("b.test", "pruned", PAGES)}
        answer = Answer.model_validate_json((await client.get("/replicas")).content)
        assert answer.replicas[0].reason == "preferred by the operator"
        assert answer.pairs[0].reasons[:2] == [
            f"{PAGES} of {PAGES} pages agree, compared one by one",
            f"same text on {PAGES} of {PAGES} shared paths",
        ]
        assert answer.pairs[0].word == "confirmed"
        assert shown(answer, w.wall()) is not None
        response = await client.post("/replicas/reject", json={"host": "a.test", "other": "b.test"})
        assert response.status_code == 200
        await w.run_replicas_job()
        assert w.replicas() == {}
        unknown = await client.post("/replicas/confirm", json={"host": "c.test"})
        assert unknown.status_code == 404
    before = w.asked("a.test")
    await w.round()
    assert w.asked("a.test") >= before + PAGES


async def test_a_group_is_decided_at_once_after_a_dry_run(world):
    # A text on four hosts weighs half as much as one on two.
    names = ("a.test", "b.test", "c.test", "d.test")
    addresses = {name: ["127.0.0.1"] for name in names}
    w = await world(*(twin(name, pages=14) for name in names), dns={"hosts": addresses})
    await w.run_job()
    [kept] = {canonical for canonical, _, _ in w.replicas().values()}
    copies = sorted(w.replicas())
    assert {status for _, status, _ in w.replicas().values()} == {"held"}
    async with w.control() as client:

        async def decide(action, *, status=200, **form):
            response = await client.post(f"/replicas/{action}", json=form)
            assert response.status_code == status, response.text
            return response.json()

        told = await decide("confirm", group=kept, dry_run=True)
        assert {without_port(each["host"]) for each in told["hosts"]} == set(copies)
        assert {each["would_rest"] for each in told["hosts"]} == {14}
        assert "dry run, nothing is changed: 3 hosts are replicas of" in told["done"]
        await w.run_replicas_job()
        assert {status for _, status, _ in w.replicas().values()} == {"held"}
        # A replica in the place of its canonical host, and the reverse: the error names the fix.
        told = await decide("confirm", group=copies[0], status=409)
        assert f"--group {kept}" in str(told)
        told = await decide("reject", host=kept, status=409)
        assert f"--group {kept}" in str(told)
        assert "PATTERN" in str(await decide("confirm", status=409))
        assert "no replica's name matches x*" in str(
            await decide("confirm", match="x*", status=409)
        )
        await decide("confirm", group=kept)
        await w.run_replicas_job()
        assert w.replicas() == dict.fromkeys(copies, (kept, "pruned", 14))
        # One leaves; the others stay a group without a question.
        await decide("reject", match=f"{copies[0][0]}.*")
        await w.run_replicas_job()
        assert w.replicas() == dict.fromkeys(copies[1:], (kept, "pruned", 14))
        answer = Answer.model_validate_json((await client.get("/replicas")).content)
        rejected = [pair.hosts for pair in answer.pairs if pair.word == "rejected"]
        assert len(rejected) == 3
        assert all(copies[0] in map(without_port, hosts) for hosts in rejected)
        assert "nothing changes" in (await decide("confirm", host=copies[1]))["done"]
        # Forgotten: the searches decide again.
        await decide("forget", match=f"{copies[0][0]}.*")
        assert "3 pairs again" in (await decide("forget", group=kept))["done"]
        await decide("forget", group=kept, status=409)
        assert w.mirror.rows("SELECT word FROM replica_pair WHERE word IS NOT NULL") == []


def linked_absolutely(host, paths=9):
    """Return a site whose pages link to its own name; of two such sites, one page differs."""

    def html(request, handler):
        path = request.target
        links = "".join(
            f'<p>no. {n} <a href="{request.origin}/p{n}">p{n}</a>' for n in range(paths)
        )
        text = {"/p1": f"only {host} says this", "/p2": "log in", "/p3": "log in", "/p4": "log in"}
        words = text.get(path, f"article {zlib.crc32(path.encode())}, which is long enough. " * 3)
        shown = links if path == "/" else ""
        return build_response(request, body=f"<h1>A</h1><p>{words}{shown}".encode())

    return SimSite((host,), SiteGraph(1, seed=1), faults={"/": html})


async def test_a_dry_run_compares_texts_as_the_search_does(world):
    w = await world(linked_absolutely("a.test"), linked_absolutely("b.test"))
    await w.run_job()
    async with w.control() as client:
        form = {"host": "b.test", "other": "a.test", "dry_run": True}
        response = await client.post("/replicas/confirm", json=form)
    [told] = response.json()["hosts"]
    # The home page differs by its links only; a text on many paths proves nothing.
    counts = (told["would_rest"], told["differing"], told["repeated"], told["only_here"])
    assert counts == (6, 1, 3, 0)
    assert told["differing_examples"] == [w.web.url("/p1", "b.test")]
    assert "6 pages would rest (0 do now), 4 would still be visited" in response.json()["done"]


async def test_sampled_pages_are_suspended_again(world):
    w = await world(twin("a.test"), twin(WWW))
    await w.run_job()
    before = w.asked(WWW)
    await w.round(8 * 3_600.0)  # the sample is let go
    assert w.replicas()[WWW] == ("a.test", "pruned", PAGES - 3)
    await w.settle()
    await w.run_job()
    assert w.replicas()[WWW] == ("a.test", "pruned", PAGES)
    assert w.asked(WWW) - before == 3
    [row] = await w.running.database.read(replica.list_replicas)
    assert (row.sampled, row.agreed, row.lag_s) == (3, 3, 0.0)
    assert (row.twins, row.agreeing, row.differing, row.root) == (PAGES, PAGES, 0, 1)


async def test_few_pages_are_sampled_as_often_as_their_visits_are_worth_it(world):
    w = await world(twin("a.test"), twin(WWW), replicas={"sample_pages": 5})
    await w.run_job()

    async def next_look_s():
        [row] = await w.running.database.read(replica.list_replicas)
        return row.look_at - w.wall()

    assert 5 * 3_600 < await next_look_s() <= 6 * 3_600
    sampled = []
    for _ in range(4):
        await w.round(await next_look_s() + 600.0)  # a sample is let go ...
        await w.settle()
        before = w.asked(WWW)
        await w.run_job()  # ... each of its pages visited, compared, and at rest again
        await w.settle()
        assert w.asked(WWW) == before
        assert w.replicas()[WWW] == ("a.test", "pruned", PAGES)
        [row] = await w.running.database.read(replica.list_replicas)
        assert row.agreed == row.sampled
        sampled.append(row.sampled)
        assert 3_600.0 - 600.0 <= await next_look_s() <= 2 * DAY_S
    # The first three show that it may stand in for the canonical host; then one pays off at a time,
    # and a part of another for the time that the sample came late.
    assert sampled[0] == 3
    assert all(1 <= after - before <= 2 for before, after in pairwise(sampled))


async def test_many_new_replicas_are_pruned_in_parts(world):
    names = [f"s{number}.test" for number in range(12)]
    addresses = {f"{www}{name}": ["127.0.0.1"] for name in names for www in ("", "www.")}
    w = await world(
        *(twin(f"{www}{name}", seed=at, pages=8) for at, name in enumerate(names)
          for www in ("", "www.")),
        replicas={"storm_share": 0.0}, dns={"hosts": addresses},
    )  # fmt: skip

    def statuses():
        return sorted(status for _, status, _ in w.replicas().values())

    await w.run_job()
    assert statuses() == ["held"] * 2 + ["pruned"] * 10
    # Another search within the hour prunes no more; the operator may hasten it.
    await w.run_replicas_job()
    assert statuses() == ["held"] * 2 + ["pruned"] * 10
    async with w.control() as client:
        answer = await client.post("/replicas/confirm-all")
        assert answer.status_code == 200, answer.text
    await w.run_replicas_job()
    assert statuses() == ["pruned"] * 12
    assert not await w.running.database.read(replica.all_allowed)


async def test_a_wrong_verdict_is_withdrawn_and_its_pages_resume(world, wall):
    parts_at = wall() + 5 * DAY_S
    w = await world(
        twin("a.test"),
        twin(WWW, changes=lambda page: poisson_process(3_600.0, start_at=parts_at, seed=page)),
    )
    await w.run_job()
    assert w.replicas()[WWW] == ("a.test", "pruned", PAGES)
    await w.round(8 * DAY_S)
    for _ in range(8):
        await w.round()
        if w.replicas()[WWW][1] == "withdrawn":
            break
    assert w.replicas()[WWW] == ("a.test", "withdrawn", 0)
    await w.round()
    [(seen,)] = w.mirror.rows(
        "SELECT count(*) FROM replica JOIN port_server USING (server_id) JOIN page USING (host_id)"
        " WHERE requisite = 0 AND last_visit_at >= since"
    )
    assert seen == PAGES
    # Pages that differ are not suspended again.
    assert w.replicas()[WWW] == ("a.test", "withdrawn", 0)


async def test_a_restart_keeps_verdicts_and_suspended_pages(world, mirror, wall, nursery):
    w = await world(twin("a.test"), twin(WWW))
    await w.run_job()
    w.running.shutdown()
    with trio.fail_after(TIMEOUT_S):
        while w.running.phase != "stopping":  # noqa: ASYNC110
            await trio.sleep(0.01)
    assert w.replicas()[WWW] == ("a.test", "pruned", PAGES)


async def test_pruning_can_be_off(world):
    w = await world(twin("a.test"), twin(WWW), replicas={"prune": False})
    await w.run_job()
    assert w.replicas()[WWW] == ("a.test", "held", 0)
