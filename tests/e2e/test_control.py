"""The operator's ways to steer a running daemon: socket, signals, and what they promise."""

import contextlib
import os
import signal
import socket
import stat

import pytest

from tests.e2e.daemon_config import rows, site, write_config
from tests.peer.daemon import RefusedError, with_crawld, with_simweb

SLOW = {"host_delay_s": 0.2, "address_delay_s": 0.0}


def at_work(stack, folder):
    """Run a daemon that is at work on a large site, slowly."""
    web = stack.enter_context(with_simweb(folder, "--host=a.test", "--host=b.test", "--pages=2000"))
    crawld = stack.enter_context(with_crawld(folder / "crawld"))
    crawld.web = web
    crawld.config = write_config(crawld, site(web.url("/", "a.test")), politeness=SLOW)
    crawld.start("run", "-c", crawld.config)
    crawld.wait_until(lambda status: status["pages"]["visited"] > 0)
    return crawld


@pytest.fixture(scope="module")
def lasting(tmp_path_factory):
    """A daemon at work, of all tests that leave it as it was."""
    with contextlib.ExitStack() as stack:
        yield at_work(stack, tmp_path_factory.mktemp("lasting"))


@pytest.fixture
def running(peers, tmp_path):
    """A daemon at work, of this test alone."""
    return at_work(peers, tmp_path)


def requests_of(crawld):
    return len(crawld.web.ledger())


def stands_still(crawld):
    """Whether the simulated web is asked nothing for a few delays."""
    before = requests_of(crawld)
    assert not crawld.process.exits_within(1.0)
    return requests_of(crawld) == before


class TestEnding:
    def test_sigterm_drains(self, running):
        assert running.terminate() == 0
        visits = rows(running, "SELECT count(*) FROM visit")[0][0]
        # robots.txt apart, every request that was answered is in the file
        assert visits == requests_of(running) - 1
        assert not running.socket.exists()

    def test_a_second_signal_ends_turns_that_do_not_end(self, simweb, crawld):
        web = simweb("--host=a.test", "--pages=3", "--fault=/stuck=hang")
        config = write_config(crawld, site(web.url("/", "a.test"), web.url("/stuck", "a.test")))
        crawld.start("run", "-c", config)
        crawld.wait_until(lambda _: any(r.target == "/stuck" for r in web.ledger().rows()))
        crawld.process.send(signal.SIGTERM)
        crawld.wait_until(lambda status: status["phase"] == "draining" and not status["unrecorded"])
        reported = crawld.get("/log?limit=100")
        assert crawld.terminate() == 0
        stored = rows(crawld, "SELECT visit_id, visited_at FROM visit ORDER BY visit_id")
        assert [(each["visit_id"], each["visited_at"]) for each in reported] == stored
        (state,) = rows(crawld, "SELECT state FROM page WHERE url LIKE '%/stuck'")
        assert state == ("discovered",)

    @pytest.mark.parametrize("now", [False, True])
    def test_shutdown_over_the_socket_answers_first(self, running, now):
        assert running.post("/shutdown", {"now": now}) == {"done": "shutting down"}
        assert running.wait() == 0

    def test_ctrl_c_drains_a_mirror(self, simweb, crawld):
        web = simweb("--pages=100")
        crawld.start("mirror", web.url(), "--delay", "0.2", "--depth", "9")
        crawld.wait_until(lambda status: status["pages"]["visited"] > 1)
        assert crawld.interrupt() == 0
        assert rows(crawld, "SELECT count(*) FROM visit")[0][0] == len(web.ledger()) - 1


class TestPausing:
    def test_everything(self, lasting):
        lasting.post("/pause", {})
        assert lasting.get("/status")["pauses"] == ["operator"]
        lasting.wait_until(lambda status: not status["slots"]["on_turn"])
        assert stands_still(lasting)
        lasting.post("/resume", {})
        before = requests_of(lasting)
        lasting.wait_until(lambda _: requests_of(lasting) > before)

    def test_a_site_and_a_host(self, lasting):
        for what, path in (({"site": "web"}, "/sites"), ({"host": "a.test"}, "/hosts")):
            lasting.post("/pause", what)
            assert [each["paused"] for each in lasting.get(path)] == [True]
            lasting.wait_until(lambda status: not status["slots"]["on_turn"])
            assert stands_still(lasting)
            lasting.post("/resume", what)
            before = requests_of(lasting)
            lasting.wait_until(lambda _, before=before: requests_of(lasting) > before)

    def test_drain_answers_when_all_is_in_the_file(self, lasting):
        lasting.post("/drain")
        status = lasting.get("/status")
        assert (status["unrecorded"], status["slots"]["on_turn"]) == (0, 0)
        assert status["pauses"] == ["drain"]
        assert rows(lasting, "SELECT count(*) FROM visit")[0][0] == requests_of(lasting) - 1
        assert stands_still(lasting)
        lasting.post("/resume", {})
        made = sum(status["visits"].values())
        lasting.wait_until(lambda status: sum(status["visits"].values()) > made)

    def test_what_is_not_there_is_said(self, lasting):
        with pytest.raises(RefusedError, match=r"known are: .*web"):
            lasting.post("/pause", {"site": "nowhere"})
        with pytest.raises(RefusedError, match="not known") as refused:
            lasting.post("/pause", {"host": "nowhere.test"})
        assert refused.value.status == 404


class TestSites:
    def test_added_and_removed(self, lasting):
        url = lasting.web.url("/", "b.test")
        added = lasting.post("/add", {"urls": [url], "site": "more", "allow_private": True})
        assert added == {"site": "more", "admitted": 1, "refused": []}
        lasting.wait_until(lambda page: page["last_outcome"] == "changed", f"/page?url={url}")
        assert {each["name"]: each["source"] for each in lasting.get("/sites")} == {
            "web": "config",
            "more": "socket",
        }
        with pytest.raises(RefusedError, match="name") as refused:
            lasting.post("/add", {"urls": [url], "site": "no / name"})
        assert refused.value.status == 422
        lasting.post("/remove", {"site": "more"})
        lasting.post("/drain")
        asked = len(lasting.web.ledger().requests("b.test"))
        lasting.post("/resume", {})
        before = requests_of(lasting)
        lasting.wait_until(lambda _: requests_of(lasting) > before + 2)
        assert len(lasting.web.ledger().requests("b.test")) == asked
        assert lasting.get(f"/page?url={url}")["versions"]  # its copies stay

    def test_a_site_of_the_config_is_removed_there(self, lasting):
        with pytest.raises(RefusedError, match="crawlctl reload"):
            lasting.post("/remove", {"site": "web"})
        assert [each["name"] for each in lasting.get("/sites")] == ["web"]

    def test_broken_urls_are_refused_whole(self, lasting):
        for url in ("", "http://", "ftp://a.test/", "http://a.test:99999/", "nonsense"):
            with pytest.raises(RefusedError) as refused:
                lasting.post("/add", {"urls": [lasting.web.url("/new", "b.test"), url]})
            assert refused.value.status == 422
        assert [each["name"] for each in lasting.get("/sites")] == ["web"]

    def test_a_public_host_needs_a_contact(self, simweb, crawld):
        web = simweb("--pages=3")
        crawld.start("mirror", web.url(), "--delay", "0.05")
        with pytest.raises(RefusedError, match="contact"):
            crawld.post("/add", {"urls": ["http://example.org/"]})


JUNK = (
    b"",
    b"\x00" * 4096,
    b"GET",
    b"GET / HTTP/1.1\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 500,
    b"GET /status HTTP/9.9\r\n\r\n",
    b"POST /add HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"POST /add HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n{}",
    b"POST /add HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /status HTTP/1.1\r\n" + b"X: y\r\n" * 50_000,
    os.urandom(10_000),
)


class TestSocket:
    def test_only_owner_and_group_may_connect(self, lasting):
        assert stat.S_IMODE(lasting.socket.stat().st_mode) == 0o660

    def test_junk_is_the_sender_s_affair(self, lasting):
        for junk in JUNK:
            with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(OSError):
                client.settimeout(0.5)
                client.connect(str(lasting.socket))
                client.sendall(junk)
                client.shutdown(socket.SHUT_WR)
                while client.recv(65_536):
                    pass
        assert lasting.get("/status")["phase"] == "running"
        assert lasting.process.returncode is None

    @pytest.mark.parametrize(
        ("path", "body", "status"),
        [
            ("/nothing", None, 404),
            ("/add", {"urls": []}, 422),
            ("/add", {"urls": ["http://a.test/"], "unknown": 1}, 422),
            ("/pause", {"site": 5}, 422),
            ("/pause", [], 422),
            ("/remove", {}, 422),
            ("/reload", None, None),
        ],
    )
    def test_wrong_forms_are_refused_and_change_nothing(self, lasting, path, body, status):
        if status is None:
            assert lasting.post(path, body) == {"changed": []}
            return
        with pytest.raises(RefusedError) as refused:
            lasting.post(path, body)
        assert refused.value.status == status
        assert lasting.get("/status")["pauses"] == []

    def test_it_describes_itself(self, lasting):
        described = lasting.get("/openapi.json")
        assert described["info"]["title"] == "crawld control socket"
        assert {"/status", "/log", "/add", "/drain"} <= described["paths"].keys()

    def test_a_stale_socket_is_replaced_and_anything_else_is_not(self, running):
        running.kill()
        assert running.socket.exists()
        running.start("run", "-c", running.config)
        running.kill()
        running.socket.unlink()
        running.socket.write_text("notes")
        running.start("run", "-c", running.config, ready=False)
        assert running.wait() == 2
        assert "is not a socket" in running.output()
        assert running.socket.read_text() == "notes"


class TestSecondDaemon:
    def test_is_refused_and_names_the_first(self, running):
        second = running.crawld("run", "-c", running.config)
        assert second.returncode == 2
        assert f"in use by process {running.process.pid}" in second.stderr
        assert running.get("/status")["phase"] == "running"

    def test_starts_once_the_first_is_gone(self, running):
        running.kill()
        running.start("run", "-c", running.config)
        assert running.get("/status")["pid"] == running.process.pid
