"""Long lists of replicas come in parts: over the control socket, in crawlctl and the dashboard."""

import json
import re

import pytest
import trio

from crawld.cli import replicas as commands
from crawld.cli.client import Client
from crawld.core.replica.verdict import PairEvidence, VerdictLevel
from crawld.daemon.dashboard import list_pages
from crawld.store.frontier import frontier
from crawld.store.frontier.frontier import Discovery
from crawld.store.replica import pair, replica
from tests.daemon.control_client import get
from tests.daemon.test_dashboard import LISTEN, ROOT, Browser

COUNT = 12


@pytest.fixture
async def running(paused_daemon):
    return await paused_daemon("http://127.0.0.1:1/", web=LISTEN)


async def put_replicas(database):
    """Store replicas of one host: three ask for an answer, four wait, the others rest."""
    names = [f"r{number:02}.test" for number in range(COUNT)]
    found = [Discovery.of(f"http://{name}/", site_id=1, at=1e9) for name in ("kept.test", *names)]
    await database.write(frontier.discover, found)
    ids = dict(
        await database.read(lambda c: c.execute("SELECT host, host_id FROM host").fetchall())
    )

    def put(connection):
        for number, name in enumerate(names):
            waits = "operator" if number < 3 else "turn" if number < 7 else None
            status = "held" if waits else "pruned"
            to = ids["kept.test"]
            how = {"now": 1e9, "look_at": 1e9, "waits_for": waits}
            replica.put_replica(connection, ids[name], to, status, "first", **how)
        decided = [(ids[name], ids["kept.test"]) for name in names[7:]]
        pair.put_words(connection, decided, "confirmed", 1e9)

    await database.write(put)
    return names


@pytest.mark.parametrize(
    ("texts", "status", "agreeing", "level"),
    [
        ("certain", "partly", 2, "unlikely"),
        ("likely", "partly", 9, "likely"),
        ("unlikely", "pruned", 9, "certain"),
    ],
)
async def test_compared_pages_count_more_than_texts(running, texts, status, agreeing, level):
    names = await put_replicas(running.database)
    one, other = names[7:9]
    ids = dict(
        await running.database.read(
            lambda c: c.execute("SELECT host, host_id FROM host").fetchall()
        )
    )

    def put(connection):
        at = min(ids[one], ids[other]), max(ids[one], ids[other])
        shown = PairEvidence(names=(one, other), pages=(9, 9), common=9, compared=9, equal=9)
        pair.put_pairs(connection, [pair.PairRow(*at, 1e9, VerdictLevel(texts), shown, {}, None)])
        how = {"now": 1e9, "look_at": 1e9}
        replica.put_replica(connection, ids[one], ids[other], status, "first", **how)
        agreement = {"agreeing": agreeing, "differing": 9 - agreeing, "root": None}
        replica.put_agreement(connection, ids[one], twins=9, **agreement)

    await running.database.write(put)
    found = (await get(running, "/replicas", host=one)).json()["pairs"]
    assert [(each["level"], each["reasons"][0]) for each in found if other in each["hosts"]] == [
        (level, f"{agreeing} of 9 pages agree, compared one by one")
    ]


async def test_a_list_comes_in_parts_with_the_counts_of_all(running):
    names = await put_replicas(running.database)
    found = []
    for start in range(0, COUNT, 5):
        part = (await get(running, "/replicas", limit=5, start=start)).json()
        assert len(part["replicas"]) <= 5
        assert (part["replicas_in_all"], part["questions"], part["waiting"]) == (COUNT, 3, 4)
        found += [row["host"] for row in part["replicas"]]
    assert found == names
    assert part["pairs"] == []
    assert part["pairs_in_all"] >= 5


async def test_crawlctl_reads_every_part(running, monkeypatch):
    names = await put_replicas(running.database)
    client = Client(running.socket_path)
    whole = await trio.to_thread.run_sync(lambda: commands.every_part(client, None, every=True))
    monkeypatch.setattr(commands, "PART", 5)
    in_parts = await trio.to_thread.run_sync(lambda: commands.every_part(client, None, every=True))
    assert json.loads(in_parts) == json.loads(whole)
    assert [row["host"] for row in json.loads(whole)["replicas"]] == names
    assert len(json.loads(whole)["pairs"]) == 5


async def test_the_dashboard_shows_parts(running, monkeypatch):
    names = await put_replicas(running.database)
    monkeypatch.setattr(list_pages, "PER_PAGE", 5)
    browser, target, found = Browser(running), "/replicas", []
    while target:
        page = await browser.page(target)
        assert "3 hosts ask for your answer" in page
        assert "4 hosts wait for their turn" in page
        found += re.findall(r'<th scope="row"><a href="[^"]*">([^<]+)<', page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        target = following and following[1].replace("&amp;", "&").removeprefix(ROOT)
    assert found == names
