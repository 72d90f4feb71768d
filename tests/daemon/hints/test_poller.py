"""Hint sources in a whole daemon: polls, streams, trouble and delivery."""

import time

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from crawld.daemon.hints.poller import HintPoller
from crawld.daemon.hints.source import HELD, Hint, Poll, PollTrouble
from crawld.daemon.run import run_daemon
from crawld.store.changes import hint, hint_source
from crawld.store.changes.wiki_requisite import StaleRequisite
from tests.daemon.harness import make_site, until

QUICK = {"schedule": {"min_revisit_s": 0.0}}


class FakeSource:
    """A source with scripted results; the last one is repeated."""

    def __init__(self, row, *answers):
        self.row = row
        self.answers = list(answers)
        self.polls = []

    polite_host = "a.test"
    is_free = False
    waiting = False

    def is_waiting(self, row):
        return self.waiting

    async def poll(self, row):
        self.polls.append(row.cursor)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer() if callable(answer) else answer


class FreeSource(FakeSource):
    """A scripted source that needs no request."""

    is_free = True


class FakeStream:
    """A stream that delivers one result per connection and then ends."""

    polite_host = "a.test"

    def __init__(self, row, result, hosts=("a.test",)):
        self.row = row
        self.result = result
        self.hosts = frozenset(hosts)
        self.connected = []

    async def listen(self, row, deliver):
        self.connected.append(row.cursor)
        await deliver(self.result(len(self.connected)))
        return PollTrouble("broken", "the connection ended", 0.01)


class SlowSource(FakeSource):
    """A scripted source whose first poll waits for `may_end`."""

    def __init__(self, row, *answers):
        super().__init__(row, *answers)
        self.begun, self.may_end = trio.Event(), trio.Event()

    async def poll(self, row):
        self.begun.set()
        await self.may_end.wait()
        return await super().poll(row)


class CursorUpdatingStream:
    """A stream that updates the cursor of a slow source during its poll."""

    polite_host = "a.test"
    hosts = frozenset(["a.test"])

    def __init__(self, row, slow):
        self.row = row
        self.slow = slow

    async def listen(self, row, deliver):
        await self.slow.begun.wait()
        to = self.slow.row.hint_source_id
        await deliver(Poll(at=time.time(), requests=0, cursor_updates=[(to, "handed on")]))
        self.slow.may_end.set()
        await trio.sleep_forever()


class ListFinder:
    """A finder that returns a given list."""

    def __init__(self):
        self.sources = []

    async def find(self):
        return self.sources


@pytest.fixture
def start_sources(nursery, mirror, serve):
    """Return a function that mirrors a site with the given hint sources."""

    async def start(*make, pages=6, share=1.0, with_requisites=False, **more):
        web = await serve(make_site(pages=pages, **more))
        tables = QUICK | {"jobs": {"poll_share": share}, "site": {"requisites": with_requisites}}
        daemon = await nursery.start(run_daemon, mirror.make_start(web.url(), once=False, **tables))
        await until(lambda: len(web.targets()) > pages, what="the first crawl")
        # Visits may never end; after a drain nothing waits for a commit.
        await daemon.drain()
        daemon.set_paused(paused=False)
        [site_id] = daemon.state.sites
        host_id = daemon.state.hosts["a.test"].host_id
        finder = ListFinder()
        for number, each in enumerate(make):
            row = await daemon.database.write(
                hint_source.ensure, site_id, host_id, f"kind{number}", web.url(), time.time()
            )
            finder.sources.append(each(row, web))
        daemon.background.hint_poller._finders.append(finder)
        daemon.background.hint_poller.find_soon()
        return daemon, web, finder.sources

    return start


def row_of(mirror, number=1):
    names = "cursor, poll_count, hint_count, real_count, false_count, missed_count, trouble"
    [row] = mirror.rows(f"SELECT {names} FROM hint_source WHERE hint_source_id = ?", number)
    return dict(zip(names.split(", "), row, strict=True))


def evidence(mirror):
    [(text,)] = mirror.rows("SELECT evidence FROM hint_source")
    return hint.load_reliability(text)


def false_hint(web):
    now = time.time()
    return Poll(at=now, hints=[Hint(web.url(), now, now)], cursor="false", told_until=now)


async def test_a_poll_continues_from_the_last_cursor(start_sources, mirror):
    answers = [Poll(at=1.0, cursor="one", more=True), Poll(at=2.0, cursor="two", wait_s=900.0)]
    _, _, [source] = await start_sources(lambda row, web: FakeSource(row, *answers))
    await until(lambda: row_of(mirror)["cursor"] == "two")
    assert source.polls == [None, "one"]
    assert row_of(mirror)["poll_count"] == 2


async def test_the_pause_after_a_poll_counts_from_its_request(start_sources):
    made = []

    def polled(row, web):
        made.append(SlowSource(row, Poll(at=1.0, cursor="polled", wait_s=900.0)))
        return made[0]

    daemon, _, _ = await start_sources(polled)
    await made[0].begun.wait()
    daemon.set_paused(paused=True)
    await until(lambda: not daemon.crawl.schedule.on_turn, what="no turn under way")
    asked_at = trio.current_time()
    daemon.state.hosts["a.test"].rest_from(asked_at)
    await until(lambda: trio.current_time() > asked_at, what="the response")
    made[0].may_end.set()
    [source] = daemon.background.hint_poller._hosts["a.test"].polled.values()
    await until(lambda: source.asked, what="the end of the poll")
    assert source.next_at == pytest.approx(asked_at + 900.0, rel=0.0, abs=1e-6)


async def test_a_cursor_updated_during_a_poll_is_polled_after_it(start_sources):
    slow = []

    def polled(row, web):
        slow.append(SlowSource(row, Poll(at=1.0, cursor="polled", wait_s=86_400.0)))
        return slow[0]

    await start_sources(polled, lambda row, web: CursorUpdatingStream(row, slow[0]))
    await until(lambda: len(slow[0].polls) == 2, what="another poll")
    assert slow[0].polls[1] == "handed on"


async def test_a_cursor_updated_after_a_restart_is_polled_at_once(start_sources):
    def rested(row, web):
        slept = row._replace(next_poll_at=time.time() + 86_400.0)
        return FakeSource(slept, Poll(at=time.time(), cursor="polled", wait_s=86_400.0))

    def recent(row, web):
        to = row.hint_source_id - 1
        update = Poll(at=time.time(), cursor_updates=[(to, "handed on")], wait_s=86_400.0)
        return FakeSource(row, update)

    _, _, [fan_out, _] = await start_sources(rested, recent)
    await until(lambda: fan_out.polls, what="a poll of what waits")
    assert fan_out.polls == ["handed on"]


async def test_what_waits_is_polled_at_once_after_a_restart(start_sources):
    def rested(*, waiting, **more):
        def make(row, web):
            slept = row._replace(next_poll_at=time.time() + 86_400.0, **more)
            source = FakeSource(slept, Poll(at=time.time(), cursor="polled", wait_s=86_400.0))
            source.waiting = waiting
            return source

        return make

    closed = {"closed_until": time.time() + 86_400.0}
    _, _, [busy, idle, shut] = await start_sources(
        rested(waiting=True), rested(waiting=False), rested(waiting=True, **closed)
    )
    await until(lambda: busy.polls, what="a poll of what waits")
    assert not idle.polls
    assert not shut.polls


async def test_a_cursor_updated_after_a_restart_waits_for_the_back_off(start_sources):
    def closed(row, web):
        until_at = time.time() + 86_400.0
        slept = row._replace(next_poll_at=until_at, closed_until=until_at)
        return FakeSource(slept, Poll(at=time.time(), cursor="polled"))

    def recent(row, web):
        to = row.hint_source_id - 1
        answer = Poll(at=time.time(), cursor_updates=[(to, "handed on")], wait_s=0.0)
        return FakeSource(row, answer)

    _, _, [shut, other] = await start_sources(closed, recent)
    await until(lambda: len(other.polls) > 1, what="two updates")
    assert not shut.polls


async def test_requisites_that_a_source_names_are_fetched_again(start_sources, mirror):
    def uploads(row, web):
        sql = "SELECT page_id, host_id, site_id FROM page WHERE url LIKE '%/logo.svg'"
        stale = [StaleRequisite(*row) for row in mirror.rows(sql)]
        return FakeSource(row, Poll(at=time.time(), requisites=stale, wait_s=900.0))

    _, web, [source] = await start_sources(uploads, with_requisites=True)
    asked = len([each for each in web.targets() if each == "/logo.svg"])
    await until(lambda: web.targets().count("/logo.svg") > asked, what="the image again")
    assert len(source.polls) == 1


async def test_false_hints_lower_the_trust(start_sources, mirror):
    # The pages never change, so every hint is false.
    await start_sources(lambda row, web: FakeSource(row, lambda: false_hint(web)))
    await until(lambda: row_of(mirror)["false_count"] >= 8)
    assert evidence(mirror).trust < 0.4
    assert row_of(mirror)["real_count"] == 0


async def test_trouble_delays_only_its_own_source(start_sources, mirror):
    closed = PollTrouble("not_json", "a page of HTML")
    _, _, [bad, good] = await start_sources(
        lambda row, web: FakeSource(row, closed),
        lambda row, web: FakeSource(row, Poll(at=time.time(), cursor="fine")),
    )
    await until(lambda: len(good.polls) >= 3)
    await until(lambda: row_of(mirror)["trouble"] == "not_json")
    assert len(bad.polls) == 1


async def test_a_held_source_is_not_in_trouble(start_sources, mirror):
    _, _, [source] = await start_sources(
        lambda row, web: FakeSource(row, PollTrouble(HELD, requests=0))
    )
    await until(lambda: source.polls)
    assert row_of(mirror)["trouble"] is None


async def test_an_exception_in_a_source_does_not_stop_the_others(start_sources, mirror):
    def fail():
        raise ZeroDivisionError

    _, _, [_, good] = await start_sources(
        lambda row, web: FakeSource(row, fail),
        lambda row, web: FakeSource(row, Poll(at=time.time(), cursor="fine")),
    )
    await until(lambda: len(good.polls) >= 2)


async def test_a_stream_reconnects_with_the_stored_cursor(start_sources, mirror):
    def result(number):
        return Poll(at=time.time(), cursor=f"event {number}", requests=0)

    _, _, [stream] = await start_sources(lambda row, web: FakeStream(row, result))
    await until(lambda: len(stream.connected) >= 3)
    assert stream.connected[:3] == [None, "event 1", "event 2"]


async def test_a_stream_with_other_hosts_is_restarted(start_sources, mirror):
    def result(number):
        return Poll(at=time.time(), cursor=f"event {number}", requests=0)

    daemon, _, streams = await start_sources(lambda row, web: FakeStream(row, result))
    [old] = streams
    await until(lambda: old.connected)
    same, more = (
        FakeStream(old.row, result),
        FakeStream(old.row, result, ("a.test", "b.test")),
    )
    streams[:] = [same]
    daemon.background.hint_poller.find_soon()
    count = len(old.connected)
    await until(lambda: len(old.connected) > count + 1)
    streams[:] = [more]
    daemon.background.hint_poller.find_soon()
    await until(lambda: len(more.connected) > 1)
    assert not same.connected


async def test_without_a_poll_share_only_free_sources_are_polled(start_sources):
    fine = Poll(at=time.time(), cursor="fine")
    daemon, _, [asked, free] = await start_sources(
        lambda row, web: FakeSource(row, fine),
        lambda row, web: FreeSource(row, fine),
        share=0.0,
    )
    # A request during a poll has no effect.
    await until(lambda: daemon.background.hint_poller.poll_all() and len(free.polls) > 1)
    assert not asked.polls


async def test_removed_sources_are_not_polled(start_sources, mirror):
    daemon, _, sources = await start_sources(
        lambda row, web: FakeSource(row, Poll(at=time.time(), cursor="fine"))
    )
    [source] = sources
    await until(lambda: source.polls)
    sources.clear()
    daemon.background.hint_poller.find_soon()
    await until(lambda: not daemon.background.hint_poller.poll_all())
    polls = len(source.polls)
    await wait_all_tasks_blocked()
    assert len(source.polls) <= polls + 1


async def test_found_urls_are_admitted_by_the_scope(start_sources, mirror):
    def found(row, web):
        urls = [web.url("/found"), web.url("/", host="b.test")]
        return FakeSource(row, Poll(at=time.time(), found_urls=urls, wait_s=900.0))

    await start_sources(found)
    await until(lambda: "/found" in mirror.pages())
    assert not [url for (url,) in mirror.rows("SELECT url FROM page") if "b.test" in url]


async def test_many_hints_are_stored_in_parts(start_sources, mirror):
    def flood(row, web):
        now = time.time()
        hints = [Hint(web.url(f"/{number}"), now, now) for number in range(5_000)]
        return FakeSource(
            row, Poll(at=now, hints=hints, cursor="all", told_until=now, wait_s=900.0)
        )

    await start_sources(flood)
    await until(lambda: row_of(mirror)["cursor"] == "all")
    assert row_of(mirror)["poll_count"] == 1


async def test_an_exception_in_a_finder_does_not_stop_the_others(start_sources, mirror):
    class Broken:
        async def find(self):
            raise ZeroDivisionError

    daemon, _, [source] = await start_sources(
        lambda row, web: FakeSource(row, Poll(at=time.time(), cursor="fine"))
    )
    await until(lambda: source.polls)
    daemon.background.hint_poller._finders.insert(0, Broken())
    daemon.background.hint_poller.find_soon()
    polls = len(source.polls)
    await until(lambda: len(source.polls) > polls + 1)


async def test_a_source_with_nothing_to_ask_for_writes_nothing(start_sources, mirror):
    idle = Poll(at=time.time(), requests=0, wait_s=0.01)
    _, _, [source] = await start_sources(lambda row, web: FakeSource(row, idle))
    await until(lambda: len(source.polls) >= 3)
    assert mirror.rows("SELECT last_poll_at FROM hint_source") == [(None,)]


async def test_the_turn_at_the_end_of_a_retry_after_is_left_to_the_poll(start_sources):
    def make(row, web):
        answers = [
            Poll(at=time.time(), cursor="polled", more=True),
            PollTrouble(HELD, pause_s=500.0, requests=0),
        ]
        return FakeSource(row._replace(kind="recent_changes"), *answers)

    daemon, _, [source] = await start_sources(make)
    await until(lambda: len(source.polls) == 2, what="a poll of a host that is closed")
    host = daemon.state.hosts["a.test"]
    await until(lambda: host.poll_at > trio.current_time() + 400.0, what="the time of the next")


async def test_hosts_in_back_off_are_forgotten_when_the_poller_runs_again(start_sources):
    daemon, _, _ = await start_sources(lambda row, web: FakeSource(row))
    poller = HintPoller(daemon.context, ())
    for _ in range(2):  # the second run follows a failure of the first
        poller._slowed.add("gone.test")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run)
            await until(lambda: not poller._slowed, what="a new run")
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
