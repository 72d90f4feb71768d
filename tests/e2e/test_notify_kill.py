"""SIGKILL while messages are under way: no event is missed, and repeated ones keep their ids.

The receiver kills the daemon in the middle of its own answers, before or after it took the message.
`CRAWLD_KILLS` is the number of kills.
"""

import json
import os
import signal
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.e2e.daemon_config import query_rows, site, write_config

KILLS = int(os.environ.get("CRAWLD_KILLS", "3"))
MESSAGES_PER_LIFE = 5


class Murderer(ThreadingHTTPServer):
    """A receiver of webhooks that kills their sender.

    Attributes:
        victim: process id of the daemon.
        kills: how many times it killed.
        messages: the bodies that it took, in order, with their keys.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Answer)
        self.victim = None
        self.kills = 0
        self.messages = []

    def take(self, key, body, answer):
        """Take a message; kill the sender with every few, at another point each time."""
        count = len(self.messages) + 1
        due = self.kills < KILLS and count % MESSAGES_PER_LIFE == 0 and self.victim is not None
        point = self.kills % 3 if due else None
        if point == 0:  # nothing is taken: the message must come again
            self.kill()
            return
        self.messages.append((key, json.loads(body)))
        if point == 1:  # taken, and the sender does not know
            self.kill()
        answer()
        if point == 2:  # taken, and the sender may have noted it
            self.kill()

    def kill(self):
        self.kills += 1
        victim, self.victim = self.victim, None
        os.kill(victim, signal.SIGKILL)


class _Answer(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.take(self.headers["Idempotency-Key"], body, self._answer)

    def _answer(self):
        try:
            self.send_response(204)
            self.end_headers()
        except OSError:
            pass  # the sender is dead

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver(cleanup):
    server = Murderer()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    cleanup.callback(server.server_close)
    cleanup.callback(thread.join)
    cleanup.callback(server.shutdown)
    return server


def test_no_event_is_missed_and_repeated_ones_keep_their_ids(simweb, crawld, receiver):
    web = simweb("--host=a.test", f"--pages={MESSAGES_PER_LIFE * (KILLS + 2)}")
    config = write_config(crawld, site(web.url("/", "a.test")))
    port = receiver.server_address[1]
    config.write_text(
        f'{config.read_text()}[[notify]]\nname = "team"\nkinds = ["new", "changed"]\n'
        f'webhook = "http://127.0.0.1:{port}/"\nallow_private = true\nmerge_above = 1000000\n'
    )
    while receiver.kills < KILLS:
        process = crawld.start("run", "-c", config, ready=False)
        receiver.victim = process.pid
        assert process.exits_within(60.0)
        assert process.wait() == -signal.SIGKILL
    crawld.start("run", "-c", config)
    crawld.wait_until(lambda status: not status["pages"]["discovered"])
    crawld.wait_until(_all_delivered, "/notify")
    crawld.post("/drain")
    crawld.wait_until(_all_delivered, "/notify")
    crawld.kill()
    stored = [number for (number,) in query_rows(crawld, "SELECT event_id FROM event ORDER BY 1")]
    assert len(stored) >= MESSAGES_PER_LIFE * KILLS
    told = [(event["event_id"], key) for key, body in receiver.messages for event in body["events"]]
    assert sorted({number for number, _ in told}) == stored
    assert len({key for _, key in told}) == len(stored)  # a message comes with its own key only
    repeated = Counter(number for number, _ in told)
    assert sum(repeated.values()) - len(stored) <= KILLS
    order = list(dict.fromkeys(number for number, _ in told))
    assert order == stored


def _all_delivered(rules):
    return rules and not rules[0]["waiting"] and rules[0]["delivered_at"] is not None
