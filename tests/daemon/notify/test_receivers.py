"""Notifications by mail and Apprise, test messages, commands, and secrets that nothing shows."""

import io
import json

import pytest
import structlog
import trio
import trio.testing

from crawld.cli.logs import configure_logs
from crawld.config.model import Config
from tests.daemon.control_client import get, post
from tests.daemon.harness import make_site, until
from tests.daemon.notify.webhook_receiver import Receiver
from tests.peer.mail_receiver import mail_receiver

SECRET = "correct-horse-battery"


@pytest.fixture
def log():
    """The log of the process."""
    stream = io.StringIO()
    configure_logs(style="json", level=lambda: "debug", stream=stream)
    yield stream
    structlog.reset_defaults()


async def test_a_mail_arrives_with_the_id_of_its_event(begin, tmp_path):
    with mail_receiver(tmp_path) as server:
        mail = {"host": "a.test", "port": server.port, "security": "none", "sender": "c@a.test"}
        rule = {"mail_to": ["you@b.test", "nobody@b.test"]}
        story = await begin(rule, mail=mail)
        await story.change(count=2, title="News\r\nBcc: all@b.test")
        await story.delivered(1)
        assert "nobody@b.test" in story.state()["trouble"]
        [mail] = server.mails()
        assert mail["Subject"] == "[s] Changed: News Bcc: all@b.test"
        assert mail["Bcc"] is None
        assert mail["Message-ID"].startswith("<crawld.")
        assert mail["Message-ID"].endswith(f".{story.ids()[1]}@a.test>")
        assert server.envelopes() == [["c@a.test", ["you@b.test"]]]
        text = mail.get_body(("plain",)).get_content()
        assert "[-0-]{+1+}" in text
        server_ends = server.port
    # The server is away: the mail is tried again.
    await story.change()
    await story.failed(1)
    assert f"port {server_ends}: connection refused" in story.state()["trouble"]


async def test_apprise_reaches_its_service(begin, tmp_path, receiver, log):
    url = tmp_path / "url"
    url.write_text(f"json://user:{SECRET}@127.0.0.1:{receiver.port}/hook\n")
    story = await begin({"apprise_file": str(url)})
    await story.change(count=2)
    await story.delivered(1)
    [sent] = receiver.messages
    assert sent["title"] == "[s] Changed: http://a.test/page"
    assert "{+1+}" in sent["message"]
    receiver.status = 500
    await story.change()
    await story.failed(1)
    assert "did not take it" in story.state()["trouble"]
    url.write_text(f"nothing://{SECRET}\n")
    await story.daemon.background.notifier.retry("team")
    await story.failed(2)
    assert story.state()["trouble"] == "apprise_file has no URL that Apprise knows"
    url.unlink()
    await story.daemon.background.notifier.retry("team")
    await story.failed(3)
    assert "cannot read" in story.state()["trouble"]
    assert SECRET not in log.getvalue()


async def test_the_webhook_of_a_file_stays_secret(begin, tmp_path, receiver, log):
    url = tmp_path / "url"
    url.write_text(f"{receiver.url(f'/{SECRET}')}\n")
    receiver.status, receiver.location = 301, f"http://b.test/{SECRET}"
    story = await begin({"webhook_file": str(url), "allow_private": True})
    await story.change(count=2)
    await story.failed(1)
    assert f"POST /{SECRET} " in receiver.heads[0]
    assert story.state()["trouble"].startswith("status 301, a redirect to http://b.test;")
    told = [(await get(story.daemon, path)).text for path in ("/notify", "/status")]
    assert "http://b.test;" in told[0]
    assert "http://b.test;" in told[1]
    assert SECRET not in "".join(told) + log.getvalue()


async def test_commands(begin, receiver):
    story = await begin({}, {"name": "daily", "when": "daily"})
    sent = (await post(story.daemon, "/notify/team/test")).json()
    assert sent == {"name": "team", "delivered": True, "trouble": ""}
    [message] = receiver.messages
    assert (message["test"], message["rule"], message["events"]) == (True, "team", [])
    assert ":team:test-" in receiver.keys[0]
    receiver.status = 503
    sent = (await post(story.daemon, "/notify/team/test")).json()
    assert sent == {"name": "team", "delivered": False, "trouble": "status 503"}
    assert story.state()["trouble"] is None  # a test is no message of the queue

    await story.change(count=2)
    await story.failed(1)
    await until(lambda: story.state("daily")["due_at"] is not None)
    [daily, team] = (await get(story.daemon, "/notify")).json()[::-1]
    assert (team["name"], team["waiting"], team["sealed"], team["tries"]) == ("team", 1, 1, 1)
    assert (team["receiver"], team["trouble"]) == ("webhook on 127.0.0.1", "status 503")
    assert (daily["waiting"], daily["sealed"], daily["when"]) == (1, 0, "daily")
    status = (await get(story.daemon, "/status")).json()
    assert status["notify_troubles"] == {"team": "status 503"}

    receiver.status = 200
    done = (await post(story.daemon, "/notify/team/retry")).json()["done"]
    assert "1 waiting for team" in done
    await story.delivered(1)
    await post(story.daemon, "/notify/daily/retry")
    await story.delivered(1, "daily")
    done = (await post(story.daemon, "/notify/daily/retry")).json()["done"]
    assert done == "nothing waits for daily"
    for action in ("test", "retry"):
        answer = await post(story.daemon, f"/notify/absent/{action}")
        assert answer.status_code == 409
        assert "daily, team" in answer.text


async def test_the_crawl_goes_on_beside_hanging_receivers(begin, serve, nursery, mirror):
    hanging = [await nursery.start(Receiver(status=None).run) for _ in range(12)]
    rules = [{"name": f"h{n}", "webhook": each.url()} for n, each in enumerate(hanging)]
    web = await serve(make_site(pages=500))
    story = await begin(*rules, seed=web.url())
    await story.change(count=2)
    await until(lambda: sum(len(each.bodies) for each in hanging) == 8)
    await trio.testing.wait_all_tasks_blocked()
    assert sum(len(each.bodies) for each in hanging) == 8  # no more at once
    before = mirror.rows("SELECT count(*) FROM visit")
    story.daemon.set_paused(paused=False)
    await until(lambda: mirror.rows("SELECT count(*) FROM visit") > before)


async def test_a_mistake_in_a_secret_is_a_failed_try(begin, tmp_path):
    headers = tmp_path / "headers"
    headers.write_text(f"Authorization: {SECRET}\n")
    story = await begin({"headers_file": str(headers)})
    headers.write_text(f"Authorization {SECRET}\n")
    await story.change(count=2)
    await story.failed(1)
    assert "is not `Name: value`" in story.state()["trouble"]
    assert SECRET not in story.state()["trouble"]


def test_a_config_shows_no_secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text(SECRET)
    given = {"name": "team", "webhook_file": str(path)}
    assert SECRET not in json.dumps(
        Config.model_validate({"notify": [given]}).model_dump(mode="json")
    )
