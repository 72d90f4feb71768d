"""What tells of changes in a universe: the API of a wiki, a feed, a stream of events."""

import pytest
import trio

from crawld.daemon.hints import sitemaps
from crawld.sources import mediawiki_history
from crawld.universe.plan import (
    PageFate,
    PageFateKind,
    UniversePlan,
)
from crawld.universe.run_universe import run_universe
from tests.universe.plans import plain_host

FATES = (
    PageFate(PageFateKind.DELETED, 3, 700.0),
    PageFate(PageFateKind.DELETED, 5, 800.0),
    PageFate(PageFateKind.RESTORED, 5, 1_400.0),
)


def host(**more):
    return plain_host(8, change_seed=3, changes_per_day=200.0, **more)


@pytest.fixture
def run(tmp_path):
    """Return a function that mirrors a host; it returns what is broken, and the events."""

    def run_it(planned):
        plan = UniversePlan(1, 2_000.0 / 86_400.0, 10.0, (planned,), (), min_revisit_s=60.0)
        path = tmp_path / "events.txt"
        with path.open("w") as events:
            result = run_universe(plan, tmp_path, event_file=events)
        return {each.invariant for each in result.auditor.found.violations}, path.read_text()

    return run_it


def test_a_wiki_is_mirrored_by_its_api(run):
    broken, events = run(host(wiki=True, events=FATES))
    assert broken == set()
    assert "log info wiki_detected" in events
    assert "list=recentchanges" in events
    assert "pageids=" in events  # histories


def test_finds_a_revision_at_a_wrong_time(run, monkeypatch):
    right = mediawiki_history.timestamp_of

    def late(row, *key):
        at = right(row, *key)
        return None if at is None else at + 10.0

    monkeypatch.setattr(mediawiki_history, "timestamp_of", late)
    broken, _ = run(host(wiki=True))
    assert "change_time" in broken


def test_feeds_and_streams_are_read(run):
    broken, events = run(host(feed=True, stream=True))
    assert broken == set()
    assert "request a.test /changes.atom" in events
    assert events.count("request a.test /stream") == 1  # it stays open


@pytest.mark.parametrize(("part_entries", "readings"), [(4_000, 1), (3, 2)])
def test_a_sitemap_of_one_part_is_read_once(run, monkeypatch, part_entries, readings):
    read = []

    class CountedReader(sitemaps.SitemapReader):
        def __init__(self):
            read.append(trio.current_time())
            super().__init__()

    monkeypatch.setattr(sitemaps, "SitemapReader", CountedReader)
    monkeypatch.setattr(sitemaps, "PART_ENTRIES", part_entries)
    broken, events = run(host(sitemap=True))
    assert broken == set()
    answers = events.count("answer a.test /sitemap.xml 200")
    assert answers > 1
    assert answers <= len(read) / readings <= answers + 1
