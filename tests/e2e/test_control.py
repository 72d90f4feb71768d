"""Control of a running daemon: control socket, signals, and what they guarantee."""

import contextlib
import os
import signal
import socket
import stat

import pytest

from tests.e2e.daemon_config import query_rows, site, start_daemon, write_config
from tests.peer.crawld_process import ControlError, with_crawld, with_simweb

SLOW = {"host_delay_s": 0.2, "address_delay_s": 0.0}


def start_busy_daemon(stack, folder):
    """Start a daemon that crawls a large site slowly."""
    web = stack.enter_context(with_simweb(folder, "--host=a.test", "--host=b.test", "--pages=2000"))
    crawld = stack.enter_context(with_crawld(folder / "crawld"))
    crawld.web = web
    crawld.config = write_config(crawld, site(web.url("/", "a.test")), politeness=SLOW)
    crawld.start("run", "-c", crawld.config)
    crawld.wait_until(lambda status: status["pages"]["visited"] > 0)
    return crawld


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory):
    """A busy daemon, shared by tests that leave it unchanged."""
    with contextlib.ExitStack() as stack:
        yield start_busy_daemon(stack, tmp_path_factory.mktemp("lasting"))


@pytest.fixture
def daemon(cleanup, tmp_path):
    """A busy daemon of this test only."""
    return start_busy_daemon(cleanup, tmp_path)


def request_count(crawld):
    return len(crawld.web.ledger())


def is_idle(crawld):
    """Return whether the simulated web gets no request for several delays."""
    before = request_count(crawld)
    assert not crawld.process.exits_within(1.0)
    return request_count(crawld) == before


class TestEnding:
    def test_sigterm_drains(self, daemon):
        assert daemon.terminate() == 0
        visits = query_rows(daemon, "SELECT count(*) FROM visit")[0][0]
        # Every answered request except robots.txt is in the database.
        assert visits == request_count(daemon) - 1
        assert not daemon.socket.exists()

    def test_a_second_signal_aborts_hanging_fetches(self, simweb, crawld):
        web = simweb("--host=a.test", "--pages=3", "--fault=/stuck=hang")
        start_daemon(crawld, site(web.url("/", "a.test"), web.url("/stuck", "a.test")))
        crawld.wait_until(lambda _: any(r.target == "/stuck" for r in web.ledger().rows()))
        crawld.process.send(signal.SIGTERM)
        crawld.wait_until(lambda status: status["phase"] == "draining" and not status["unrecorded"])
        reported = crawld.get("/log?limit=100")
        assert crawld.terminate() == 0
        stored = query_rows(crawld, "SELECT visit_id, visited_at FROM visit ORDER BY visit_id")
        assert [(each["visit_id"], each["visited_at"]) for each in reported] == stored
        (state,) = query_rows(crawld, "SELECT state FROM page WHERE url LIKE '%/stuck'")
        assert state == ("discovered",)

    @pytest.mark.parametrize("now", [False, True])
    def test_shutdown_over_the_socket_answers_first(self, daemon, now):
        assert daemon.post("/shutdown", {"now": now}) == {"done": "shutting down"}
        assert daemon.wait() == 0

    def test_ctrl_c_drains_a_mirror(self, simweb, crawld):
        web = simweb("--pages=100")
        crawld.start("mirror", web.url(), "--delay", "0.2", "--depth", "9")
        crawld.wait_until(lambda status: status["pages"]["visited"] > 1)
        assert crawld.interrupt() == 0
        assert query_rows(crawld, "SELECT count(*) FROM visit")[0][0] == len(web.ledger()) - 1


class TestPausing:
    def test_everything(self, shared_daemon):
        shared_daemon.post("/pause", {})
        assert shared_daemon.get("/status")["pauses"] == ["operator"]
        shared_daemon.wait_until(lambda status: not status["slots"]["on_turn"])
        assert is_idle(shared_daemon)
        shared_daemon.post("/resume", {})
        before = request_count(shared_daemon)
        shared_daemon.wait_until(lambda _: request_count(shared_daemon) > before)

    def test_a_site_and_a_host(self, shared_daemon):
        for what, path in (({"site": "web"}, "/sites"), ({"host": "a.test"}, "/hosts")):
            shared_daemon.post("/pause", what)
            assert [each["paused"] for each in shared_daemon.get(path)] == [True]
            shared_daemon.wait_until(lambda status: not status["slots"]["on_turn"])
            assert is_idle(shared_daemon)
            shared_daemon.post("/resume", what)
            before = request_count(shared_daemon)
            shared_daemon.wait_until(lambda _, before=before: request_count(shared_daemon) > before)

    def test_drain_answers_when_all_is_in_the_file(self, shared_daemon):
        shared_daemon.post("/drain")
        status = shared_daemon.get("/status")
        assert (status["unrecorded"], status["slots"]["on_turn"]) == (0, 0)
        assert status["pauses"] == ["drain"]
        assert (
            query_rows(shared_daemon, "SELECT count(*) FROM visit")[0][0]
            == request_count(shared_daemon) - 1
        )
        assert is_idle(shared_daemon)
        shared_daemon.post("/resume", {})
        made = sum(status["visits"].values())
        shared_daemon.wait_until(lambda status: sum(status["visits"].values()) > made)

    def test_unknown_sites_and_hosts_are_reported(self, shared_daemon):
        with pytest.raises(ControlError, match=r"known are: .*web"):
            shared_daemon.post("/pause", {"site": "nowhere"})
        with pytest.raises(ControlError, match="not known") as refused:
            shared_daemon.post("/pause", {"host": "nowhere.test"})
        assert refused.value.status == 404


class TestSites:
    def test_added_and_removed(self, shared_daemon):
        url = shared_daemon.web.url("/", "b.test")
        added = shared_daemon.post("/add", {"urls": [url], "site": "more", "allow_private": True})
        assert (added["site"], added["new_site"], added["admitted"]) == ("more", True, 1)
        assert added["refused"] == added["warnings"] == []
        shared_daemon.wait_until(lambda page: page["last_outcome"] == "changed", f"/page?url={url}")
        assert {each["name"]: each["source"] for each in shared_daemon.get("/sites")} == {
            "web": "config",
            "more": "socket",
        }
        with pytest.raises(ControlError, match="name") as refused:
            shared_daemon.post("/add", {"urls": [url], "site": "no / name"})
        assert refused.value.status == 422
        shared_daemon.post("/remove", {"site": "more"})
        shared_daemon.post("/drain")
        asked = len(shared_daemon.web.ledger().requests("b.test"))
        shared_daemon.post("/resume", {})
        before = request_count(shared_daemon)
        shared_daemon.wait_until(lambda _: request_count(shared_daemon) > before + 2)
        assert len(shared_daemon.web.ledger().requests("b.test")) == asked
        assert shared_daemon.get(f"/page?url={url}")["versions"]  # its versions stay

    def test_a_config_site_can_only_be_removed_in_the_config(self, shared_daemon):
        with pytest.raises(ControlError, match="crawlctl reload"):
            shared_daemon.post("/remove", {"site": "web"})
        assert [each["name"] for each in shared_daemon.get("/sites")] == ["web"]

    def test_one_broken_url_rejects_the_whole_request(self, shared_daemon):
        for url in ("", "http://", "ftp://a.test/", "http://a.test:99999/", "nonsense"):
            with pytest.raises(ControlError) as refused:
                shared_daemon.post("/add", {"urls": [shared_daemon.web.url("/new", "b.test"), url]})
            assert refused.value.status == 422
        assert [each["name"] for each in shared_daemon.get("/sites")] == ["web"]

    def test_a_public_host_needs_a_contact(self, simweb, crawld):
        web = simweb("--pages=3")
        crawld.start("mirror", web.url(), "--delay", "0.05")
        with pytest.raises(ControlError, match="contact"):
            crawld.post("/add", {"urls": ["http://example.org/"]})


JUNK_REQUESTS = (
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
    def test_only_owner_and_group_may_connect(self, shared_daemon):
        assert stat.S_IMODE(shared_daemon.socket.stat().st_mode) == 0o660

    def test_junk_does_not_disturb_the_daemon(self, shared_daemon):
        for junk in JUNK_REQUESTS:
            with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(OSError):
                client.settimeout(0.5)
                client.connect(str(shared_daemon.socket))
                client.sendall(junk)
                client.shutdown(socket.SHUT_WR)
                while client.recv(65_536):
                    pass
        assert shared_daemon.get("/status")["phase"] == "running"
        assert shared_daemon.process.returncode is None

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
    def test_invalid_requests_are_rejected_and_change_nothing(
        self, shared_daemon, path, body, status
    ):
        if status is None:
            assert shared_daemon.post(path, body) == {"changed": []}
            return
        with pytest.raises(ControlError) as refused:
            shared_daemon.post(path, body)
        assert refused.value.status == status
        assert shared_daemon.get("/status")["pauses"] == []

    def test_openapi_describes_the_socket(self, shared_daemon):
        described = shared_daemon.get("/openapi.json")
        assert described["info"]["title"] == "crawld control socket"
        assert {"/status", "/log", "/add", "/drain"} <= described["paths"].keys()

    def test_a_stale_socket_is_replaced_and_anything_else_is_not(self, daemon):
        daemon.kill()
        assert daemon.socket.exists()
        daemon.start("run", "-c", daemon.config)
        daemon.kill()
        daemon.socket.unlink()
        daemon.socket.write_text("notes")
        daemon.start("run", "-c", daemon.config, ready=False)
        assert daemon.wait() == 2
        assert "is not a socket" in daemon.output()
        assert daemon.socket.read_text() == "notes"


class TestSecondDaemon:
    def test_is_refused_and_names_the_first(self, daemon):
        second = daemon.crawld("run", "-c", daemon.config)
        assert second.returncode == 2
        assert f"in use by process {daemon.process.pid}" in second.stderr
        assert daemon.get("/status")["phase"] == "running"

    def test_starts_once_the_first_is_gone(self, daemon):
        daemon.kill()
        daemon.start("run", "-c", daemon.config)
        assert daemon.get("/status")["pid"] == daemon.process.pid
