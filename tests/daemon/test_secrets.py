"""Request headers of `headers_file`: who gets them, and that nothing keeps or shows them."""

import io
from dataclasses import dataclass, field, replace

import pytest
import structlog
import trio
from warcio.archiveiterator import ArchiveIterator

from crawld.cli.logs import configure_logs
from crawld.daemon.run import run_daemon
from crawld.export import archive
from crawld.export.source import ExportRequest
from crawld.net.network import SystemNetwork
from tests.daemon.harness import TIMEOUT_S, until
from tests.daemon.http_server import listen, next_head

SECRET = "correct-horse-battery"
SESSION = "session-of-the-operator"


@dataclass
class Server:
    """Answers by path, and remembers the heads it got; repeats Authorization as a bad server."""

    bodies: dict = field(default_factory=dict)
    redirects: dict = field(default_factory=dict)
    heads: dict = field(default_factory=dict)
    port: int = 0

    async def run(self, task_status):
        await listen(self, self.talk, task_status)

    async def talk(self, stream):
        received = b""
        while (found := await next_head(stream, received)) is not None:
            head, received = found
            await stream.send_all(self.answer(head))

    def answer(self, head):
        path = head.split(" ")[1]
        self.heads[path] = head
        body = self.bodies.get(path, "").encode()
        status = "200 OK" if body else "404 Not Found"
        lines = ["Content-Type: text/html", f"Content-Length: {len(body)}"]
        if path in self.redirects:
            status = "302 Found"
            lines.append(f"Location: {self.redirects[path]}")
        for line in head.splitlines():
            if line.lower().startswith("authorization:"):
                lines.append(f"X-Seen: {line}")
                lines.append(f"Set-Cookie: id={SESSION}")
        return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode() + body

    def got_secret(self):
        """Return the paths whose requests had the secret."""
        return {path for path, head in self.heads.items() if SECRET in head}


@pytest.fixture
def headers_file(tmp_path):
    """A headers file with a secret."""
    path = tmp_path / "secret.headers"
    path.write_text(f"Authorization: Bearer {SECRET}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def log():
    """The log of the process, in both styles."""
    streams = {}

    def start(style):
        streams[style] = io.StringIO()
        configure_logs(style=style, level=lambda: "debug", stream=streams[style])
        return streams[style]

    yield start
    structlog.reset_defaults()


async def test_headers_reach_their_origin_only_and_are_kept_nowhere(
    nursery, mirror, headers_file, log, tmp_path
):
    own, other = await nursery.start(Server().run), await nursery.start(Server().run)
    base, aside = f"http://a.test:{own.port}", f"http://a.test:{other.port}"
    links = ("/two", "/away", f"{aside}/port", f"http://b.test:{own.port}/host")
    userinfo = f"//u:pw@a.test:{own.port}/userinfo"
    own.bodies = {
        "/": "<p>one</p>" + "".join(f'<a href="{link}">x</a>' for link in (*links, userinfo)),
        "/two": "<p>two</p>",
        "/userinfo": "<p>three</p>",
        "/host": "<p>host</p>",
    }
    own.redirects = {"/away": f"{aside}/target"}
    other.bodies = {"/port": "<p>port</p>", "/target": "<p>target</p>"}
    written = log("json")
    site = {"headers_file": str(headers_file), "hosts": ["b.test"]}
    await mirror.run(f"{base}/", site=site)

    assert {"/", "/two", "/away", "/userinfo"} <= own.got_secret()
    assert {"/port", "/target"} <= other.heads.keys()
    assert "/host" in own.heads
    assert "/host" not in own.got_secret()
    assert not other.got_secret()

    everything = mirror.db.read_bytes() + written.getvalue().encode()
    target = tmp_path / "m.warc.gz"
    archive.export_warc(ExportRequest(mirror.db, target, 1.9e9))
    with target.open("rb") as file:
        for record in ArchiveIterator(file):
            everything += str(record.http_headers).encode() + record.content_stream().read()
    assert b"<p>two</p>" in everything
    for hidden in (SECRET, SESSION, "u:pw"):
        if hidden == "u:pw":
            everything = everything.replace(userinfo.encode(), b"")  # the page itself
        assert hidden.encode() not in everything


class BrokenNetwork(SystemNetwork):
    """A network with a bug: its connections raise what nothing expects."""

    async def connect(self, address, port):
        raise KeyError("a bug")


@pytest.mark.parametrize("style", ["json", "console"])
async def test_a_bug_in_a_turn_is_logged_without_the_secret(mirror, headers_file, log, style):
    written = log(style)
    start = mirror.make_start(
        "http://a.test/", once=False, site={"headers_file": str(headers_file)}
    )
    start = replace(start, environment=replace(start.environment, network=BrokenNetwork()))
    with trio.fail_after(TIMEOUT_S):
        async with trio.open_nursery() as nursery:
            await nursery.start(run_daemon, start)
            await until(lambda: "a bug" in written.getvalue())
            nursery.cancel_scope.cancel()
    assert "turn_failed" in written.getvalue()
    assert SECRET not in written.getvalue()
    assert "headers" not in written.getvalue()  # no local variables at all
