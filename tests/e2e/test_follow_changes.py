"""Changes over kills: none is missed, and each is once in the feed and in `crawlctl changes`.

`CRAWLD_EVENT_KILLS` is the number of kills.
"""

import json
import os
import random
import sys
from urllib.request import urlopen
from xml.etree import ElementTree

import pytest

from tests.e2e.daemon_config import query_rows, site, write_config
from tests.peer.process import ManagedProcess

KILLS = int(os.environ.get("CRAWLD_EVENT_KILLS", "2"))
ATOM = "{http://www.w3.org/2005/Atom}"

EVENTS = "SELECT event_id, page_id, kind, at FROM event ORDER BY event_id"

# By definition: a copy that is a page's first is new, and any other that was stored is a change.
COPIES = """
SELECT page_id, iif(visited_at = min(visited_at) OVER (PARTITION BY page_id), 'new', 'changed'),
       visited_at FROM version ORDER BY version_id
"""


def feed_of(crawld):
    """Return the ids of all pages of the feed, newest first."""
    crawld.wait_until(lambda _: '"event": "web"' in crawld.output())
    [line] = [line for line in crawld.output().splitlines() if '"event": "web"' in line]
    found, link = [], json.loads(line)["url"].rstrip("/") + "/changes.atom"
    while link is not None:
        with urlopen(link, timeout=120) as response:
            root = ElementTree.parse(response).getroot()
        found += [each.text for each in root.findall(f"{ATOM}entry/{ATOM}id")]
        links = {each.get("rel"): each.get("href") for each in root.findall(f"{ATOM}link")}
        link = links.get("next")
    return found


@pytest.fixture
def follower(crawld, cleanup):
    """Return a function that follows the changes of a daemon by crawlctl."""

    def start():
        words = ("changes", "--since", "1 day ago", "--follow", "--json")
        command = [sys.executable, "-m", "crawld.cli.crawlctl", *words]
        where = {"CRAWLD_SOCKET": str(crawld.socket)}
        process = ManagedProcess(command, crawld.folder, name="follow", environment=where)
        cleanup.callback(process.end)
        return process

    return start


def followed(process):
    return [
        json.loads(line)
        for line in process.stdout.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]


def test_no_change_is_missed_or_told_twice_over_kills(simweb, crawld, follower):
    web = simweb("--host=a.test", "--pages=60", "--change-interval-s", "0.5", "4")
    config = write_config(
        crawld,
        site(web.url("/", "a.test")),
        web={"listen": "127.0.0.1:0"},
        schedule={"min_revisit_s": 1.0},
        politeness={"host_delay_s": 0.01, "address_delay_s": 0.0},
    )
    rng, process, seen = random.Random(1), None, 0
    for _ in range(KILLS):
        crawld.start("run", "-c", config)
        process = process or follower()
        crawld.wait_until(lambda _, process=process: followed(process))
        wanted = seen + rng.randint(1, 12)
        crawld.wait_until(lambda _, wanted=wanted: len(query_rows(crawld, EVENTS)) >= wanted)
        crawld.process.exits_within(rng.uniform(0.0, 0.3))
        crawld.kill()
        seen = len(query_rows(crawld, EVENTS))
    crawld.start("run", "-c", config)
    crawld.wait_until(lambda _: len(query_rows(crawld, EVENTS)) > seen)
    crawld.post("/pause", {"site": "web"})
    crawld.wait_until(lambda status: status["slots"]["on_turn"] == status["unrecorded"] == 0)
    events = query_rows(crawld, EVENTS)
    # Each stored copy is an event, and each event a stored copy.
    assert [row[1:] for row in events] == query_rows(crawld, COPIES)
    ids = [event_id for event_id, *_ in events]
    crawld.wait_until(lambda _: len(followed(process)) >= len(ids))
    assert [each["event_id"] for each in followed(process)] == ids
    feed = feed_of(crawld)
    assert [int(each.rpartition(":")[2]) for each in feed] == ids[::-1]
    assert feed[::-1] == [each["id"] for each in followed(process)]
