"""Notifications of a whole daemon: real events, a real queue, real receivers that fail."""

import hmac
from contextlib import suppress

import pytest
import trio
import trio.testing

from crawld.config.model import Config
from crawld.daemon.notify import composer, rule_task
from crawld.errors import DatabaseInUseError
from crawld.store.engine.lock import DatabaseLock
from crawld.store.mirror import events
from tests.daemon.harness import until
from tests.daemon.notify.webhook_receiver import Receiver

SECRET = "correct-horse-battery"


async def test_a_change_is_told_once_with_its_words_and_links(begin, tmp_path):
    (tmp_path / "key").write_text(SECRET)
    (tmp_path / "headers").write_text(f"Authorization: Bearer {SECRET}\n")
    files = {"secret_file": str(tmp_path / "key"), "headers_file": str(tmp_path / "headers")}
    story = await begin(files, web={"public_url": "https://m.example/"})
    await story.change(count=2, title='<script>"Ünï\u202e\x07</script>', wake=False)
    await story.delivered(1)
    [message], [key] = story.receiver.messages, story.receiver.keys
    mirror_id = await story.daemon.database.read(events.mirror_id)
    [_, changed] = story.ids()  # the first copy is new, which the rule does not report
    assert key == message["id"] == message["events"][0]["id"] == f"urn:crawld:{mirror_id}:{changed}"
    assert (message["rule"], message["mirror"], message["test"]) == ("team", mirror_id, False)
    [event] = message["events"]
    assert event["kind"] == "changed"
    assert (event["site"], event["url"]) == ("s", "http://a.test/page")
    assert event["title"] == '<script>"Ünï\u202e\x07</script>'
    assert event["at"] == "2023-11-15T22:13:20Z"
    assert event["page"] == "https://m.example/http/a.test/page"
    assert event["diff"].startswith("https://m.example/diff/")
    assert event["diff"].endswith("/http/a.test/page")
    change = event["change"]
    assert (change["words_added"], change["words_removed"], change["cut"]) == (1, 1, False)
    assert {"op": "removed", "text": "0"} in change["pieces"]
    assert {"op": "added", "text": "1"} in change["pieces"]
    head, body = story.receiver.heads[0], story.receiver.bodies[0]
    signature = hmac.new(SECRET.encode(), body, "sha256").hexdigest()
    assert Receiver.header(head, "x-crawld-signature-256") == f"sha256={signature}"
    assert Receiver.header(head, "authorization") == f"Bearer {SECRET}"
    assert Receiver.header(head, "content-type") == "application/json"
    assert head.startswith("POST /hook HTTP/1.1")
    assert "crawld/" in Receiver.header(head, "user-agent")


async def test_rules_tell_only_what_they_are_about(begin):
    story = await begin(
        {"name": "all", "kinds": ["new", "changed", "gone", "back"]},
        {"name": "gone", "kinds": ["gone"]},
        {"name": "pages", "include": ["prefix:/b"]},
        {"name": "other", "sites": ["t"]},
        {"name": "large", "kinds": ["changed"], "min_changed_share": 0.5},
        {"name": "words", "kinds": ["changed"], "min_changed_words": 3},
        {"name": "text", "matches": "edit|^2$"},
    )
    await story.change("/a", count=3)
    await story.lose("/a")
    await story.change("/b", count=2)
    for name, count in {"all": 6, "gone": 1, "pages": 1, "text": 1}.items():
        await story.delivered(count, name)
    told = {}
    for message in story.receiver.messages:
        for event in message["events"]:
            path = event["url"].removeprefix("http://a.test/")
            told.setdefault(message["rule"], []).append(f"{event['kind']} {path}")
    assert told == {
        "all": ["new a", "changed a", "changed a", "gone a", "new b", "changed b"],
        "gone": ["gone a"],
        "pages": ["changed b"],
        "text": ["changed a"],
    }


async def test_a_receiver_that_fails_for_a_day_gets_everything_merged(begin):
    story = await begin({"merge_above": 5})
    story.receiver.status = 500
    await story.change(count=3)
    shares = []
    while (tries := len(shares) + 1) < 12:
        await story.failed(tries)
        state = story.state()
        pause_s = state["next_try_at"] - state["trouble_at"]
        shares.append(pause_s / min(10.0 * 2 ** (state["tries"] - 1), 3_600.0))
        assert state["trouble"] == "status 500"
        await story.change(count=3)
        story.pass_time(pause_s + 1.0)
    assert 0.5 <= min(shares) < 0.9
    assert max(shares) <= 1.0
    await story.failed(12)
    assert len(set(story.receiver.keys)) == 1  # the same message again and again
    assert story.daemon.background.notifier.troubles() == {"team": "status 500"}
    story.receiver.status = 204
    story.pass_time(3_600.0)
    told = story.ids()[1:]
    await story.delivered(len(told))
    assert story.state()["trouble"] is None
    assert story.daemon.background.notifier.troubles() == {}
    sizes = [len(each["events"]) for each in story.receiver.messages]
    assert sizes[-2:] == [1, len(told) - 1]
    assert story.receiver.events[-len(told) :] == told
    assert story.receiver.keys[-1].endswith(f":team:{told[1]}-{told[-1]}")


@pytest.mark.parametrize(
    ("asked", "most_s"), [("900", 900.0), ("1", 10.0), ("99999999", 3_600.0), ("soon", 10.0)]
)
async def test_a_receiver_is_left_alone_as_long_as_it_asks(begin, asked, most_s):
    """The pause is the longer one of its own and the receiver's, an hour at most."""
    story = await begin()
    story.receiver.status, story.receiver.retry_after = 429, asked
    await story.change(count=2)
    await story.failed(1)
    state = story.state()
    pause_s = state["next_try_at"] - state["trouble_at"]
    assert pause_s == most_s if most_s > 10.0 else 5.0 <= pause_s <= most_s
    story.receiver.status = 200
    story.pass_time(pause_s)
    await story.delivered(1)


async def test_what_waits_for_a_receiver_that_fails_is_bounded(begin):
    story = await begin()
    story.receiver.status = 500
    most = rule_task.MAX_EVENTS_PER_MESSAGE
    await story.change_often(most + 120)
    await until(lambda: story.mirror.rows("SELECT count(*) FROM notify_event") == [(most,)])
    await story.failed(1)
    await story.change()
    await trio.testing.wait_all_tasks_blocked()
    assert story.mirror.rows("SELECT count(*) FROM notify_event") == [(most,)]
    story.receiver.status = 200
    await story.daemon.background.notifier.retry("team")
    told = story.ids()[1:]
    await story.delivered(len(told))
    assert story.receiver.events[-len(told) :] == told
    assert max(len(each["events"]) for each in story.receiver.messages) <= most
    # The changes of one message that are described are bounded, too.
    described = [sum("change" in event for event in m["events"]) for m in story.receiver.messages]
    assert max(described) == 20


async def test_a_message_is_given_up_after_its_time(begin):
    story = await begin({"give_up_s": 7_200.0})
    story.receiver.status = 500
    await story.change(count=2)
    for tries in range(1, 5):
        await story.failed(tries)
        story.pass_time(3_600.0)
    await until(lambda: story.state()["given_up"] == 1)
    assert story.state()["trouble"] == "status 500"
    story.receiver.status = 200
    await story.change()
    await story.delivered(1)
    assert story.state()["given_up"] == 1
    assert story.receiver.events[-1] == story.ids()[-1]


async def test_no_clock_gives_a_message_up_at_once_or_makes_it_wait(begin):
    story = await begin()
    story.receiver.status = 500
    await story.change(count=2)
    await story.failed(1)
    story.pass_time(1e9)  # the next century
    await story.failed(2)
    story.receiver.status = 200
    story.pass_time(-2e9)  # and the one before
    await story.delivered(1)
    assert story.state()["given_up"] == 0


async def test_no_clock_makes_a_digest_wait_for_ever(begin):
    story = await begin({"when": "daily"})
    await story.change(count=2)
    await until(lambda: story.state()["due_at"] is not None)
    story.pass_time(-1e9)
    await story.delivered(1)


async def test_redirects_are_failures(begin):
    story = await begin()
    story.receiver.status, story.receiver.location = 302, "http://169.254.169.254/secret"
    await story.change(count=2)
    await story.failed(1)
    trouble = "status 302, a redirect to http://169.254.169.254/secret; redirects are not followed"
    assert story.state()["trouble"].startswith(trouble)


async def test_private_addresses_need_permission(begin, receiver):
    story = await begin({"allow_private": False}, {"name": "b"})
    await story.change(count=2)
    await story.failed(1)
    assert story.state()["trouble"] == "127.0.0.1 is not a public address"
    await story.delivered(1, "b")  # a rule that fails holds up no other
    assert {each["rule"] for each in receiver.messages} == {"b"}


async def test_a_receiver_that_hangs_holds_up_no_other(begin, nursery):
    hanging = await nursery.start(Receiver(status=None).run)
    story = await begin({"name": "hangs", "webhook": hanging.url()}, {})
    await story.change(count=3)
    await story.delivered(2)
    assert len(hanging.bodies) == 1


async def test_a_digest_tells_everything_of_an_hour(begin, wall):
    wall.shift_s = 3_600.0 - wall() % 3_600.0 + 60.0  # a minute past the hour
    story = await begin({"when": "hourly"})
    await story.change("/a", count=3)
    await story.change("/b", count=2)
    await until(lambda: story.state()["examined"] == story.ids()[-1])
    assert story.state()["due_at"] % 3_600.0 == 0.0
    story.pass_time(3_400.0)
    await trio.testing.wait_all_tasks_blocked()
    assert not story.receiver.bodies
    story.pass_time(200.0)
    await story.delivered(3)
    [message] = story.receiver.messages
    assert len(message["events"]) == 3
    await story.change("/b")
    await until(lambda: story.state()["examined"] == story.ids()[-1])
    assert story.state()["due_at"] > wall()
    assert len(story.receiver.bodies) == 1


async def test_nothing_is_lost_by_a_restart(begin, mirror, paused_daemon):
    story = await begin()
    await story.change(count=2)
    await story.delivered(1)
    story.receiver.status = 500
    await story.change()
    await story.failed(1)
    config = story.daemon.config
    key, last = story.receiver.keys[-1], story.ids()[-1]
    [seed] = config.sites[0].seeds
    story.receiver.status = 200
    await ended(story.daemon)
    # A daemon without rules keeps their queue for a while.
    await ended(await paused_daemon(seed))
    assert mirror.rows("SELECT count(*) FROM notify_event") == [(1,)]
    rules = [each.model_dump(mode="json") for each in config.notify]
    again = await paused_daemon(seed, notify=rules)
    await again.background.notifier.retry("team")
    await story.delivered(2)
    assert story.receiver.keys[-1] == key
    assert story.receiver.events[-1] == last


async def ended(running):
    """End a daemon; return when another can open its file."""
    running.set_paused(paused=True)
    running.shutdown()
    while True:
        with suppress(DatabaseInUseError):
            DatabaseLock.acquire(running.database.path).release()
            return
        await trio.sleep(0.005)


async def test_a_reload_takes_rules_at_once(begin, receiver):
    story = await begin()

    async def apply(*rules):
        given = [{"webhook": receiver.url(), "allow_private": True, **rule} for rule in rules]
        dumped = story.daemon.config.model_dump(by_alias=True, mode="json")
        story.daemon._config = Config.model_validate({**dumped, "notify": given})
        story.daemon.background.notifier.config_changed()

    await apply({"name": "b", "kinds": ["new", "changed"]})
    await until(lambda: story.mirror.rows("SELECT 1 FROM notify_rule WHERE name = 'b'"))
    await story.change(count=2)
    await story.delivered(2, "b")
    assert {each["rule"] for each in receiver.messages} == {"b"}
    await apply({"name": "team"}, {"name": "b"})
    await until(
        lambda: not story.mirror.rows("SELECT 1 FROM notify_rule WHERE retired_at IS NOT NULL")
    )
    # A rule that was away for a short time goes on where it was.
    await story.delivered(1)


async def test_the_text_of_a_withheld_or_large_page_is_not_told(begin, monkeypatch):
    story = await begin(site={"deleted_pages": "withhold"})
    story.receiver.status = 500
    await story.change(count=2)
    await story.failed(1)
    assert "change" in story.receiver.messages[0]["events"][0]
    await story.lose()
    story.receiver.status = 200
    await story.daemon.background.notifier.retry("team")
    await story.delivered(2)
    assert all("change" not in each["events"][0] for each in story.receiver.messages[1:])
    monkeypatch.setattr(composer, "MAX_COMPARED_BYTES", 100)
    await story.change("/b", count=2)
    await story.delivered(3)
    assert "change" not in story.receiver.messages[-1]["events"][0]


async def test_a_purged_page_is_told_no_more(begin):
    story = await begin({"merge_above": 1_000})
    story.receiver.status = 500
    await story.change(count=2)
    await story.failed(1)
    database = story.daemon.database
    await database.write(_delete_events)
    story.receiver.status = 200
    await story.daemon.background.notifier.retry("team")
    await until(lambda: story.state()["next_try_at"] is None)
    assert len(story.receiver.bodies) == 1
    await story.change()
    await story.delivered(1)


def _delete_events(connection):
    connection.execute("DELETE FROM event")
