import gzip
import os
import signal
import ssl
import subprocess
import sys
import zlib

import h11
import httpx
import pytest
import trio
import trustme

from crawld.errors import OperatorError
from crawld.simweb import fault
from crawld.simweb.change_process import periodic_process
from crawld.simweb.demo import make_sites
from crawld.simweb.graph import SiteGraph
from crawld.simweb.ledger import Ledger
from crawld.simweb.message import SimRequest, SimResponse
from crawld.simweb.server import PRECISION_S, SimWeb
from crawld.simweb.site import SimSite

NOW = 1_700_000_000.0


def faulty(**faults):
    return SimSite(("127.0.0.1",), SiteGraph(20), faults={"/": next(iter(faults.values()))})


HOME = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def exchange(listening, wire=HOME):
    """Send bytes, close the sending side, and return all bytes received."""
    async with await trio.open_tcp_stream("127.0.0.1", listening.port) as stream:
        await stream.send_all(wire)
        await stream.send_eof()
        return b"".join([chunk async for chunk in stream])


async def test_virtual_hosts_by_name_and_by_address(nursery):
    named, addressed = make_sites(["Alpha.test", "127.4.5.6"], pages=3, seed=1)
    web = SimWeb([named, addressed], clock=lambda: NOW, any_loopback=True)
    listening = await nursery.start(web.serve)
    async with httpx.AsyncClient(verify=False, trust_env=False, timeout=60) as client:
        by_name = await client.get(listening.url(), headers={"Host": "alpha.TEST:1"})
        by_address = await client.get(listening.url("127.4.5.6"), headers={"User-Agent": "x/1"})
        unknown = await client.get(listening.url(), headers={"Host": "beta.test"})
    assert by_name.content == named.rendering.html(0, 0)
    assert by_address.content == addressed.rendering.html(0, 0)
    assert unknown.status_code == 421
    rows = list(web.ledger.rows())
    assert [r.host for r in rows] == ["alpha.test", "127.4.5.6", "beta.test"]
    assert [r.address for r in rows] == ["127.0.0.1", "127.4.5.6", "127.0.0.1"]
    assert [r.status for r in rows] == [200, 200, 421]
    assert rows[1].user_agent == "x/1"
    assert all(r.first_byte_s <= r.complete_s and r.at == NOW for r in rows)
    assert rows == sorted(rows, key=lambda r: r.complete_s)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when bytes arrived")
async def test_a_request_counts_from_its_arrival_at_the_system(nursery):
    web = SimWeb([SimSite(("127.0.0.1",), SiteGraph(3))])
    listening = await nursery.start(web.serve)
    async with await trio.open_tcp_stream("127.0.0.1", listening.port) as stream:
        complete_s = begun_s = sent_s = 0.0
        with trio.fail_after(60.0):  # the system begins to take times soon after it is asked to
            while not begun_s - PRECISION_S <= complete_s <= sent_s + PRECISION_S or not sent_s:
                await stream.send_all(HOME[:-2])
                begun_s = trio.current_time()
                stream.socket._sock.sendall(HOME[-2:])
                sent_s = trio.current_time()
                while trio.current_time() < sent_s + 0.05:
                    pass  # the server cannot read
                await stream.receive_some()
                complete_s = web.ledger.row(len(web.ledger) - 1).complete_s
    assert complete_s


async def test_the_site_follows_an_injected_clock(nursery):
    now = [NOW]
    site = SimSite(
        ("127.0.0.1",),
        SiteGraph(5),
        changes=lambda page: periodic_process(60.0, start_at=NOW),
        start_at=NOW,
    )
    web = SimWeb([site], clock=lambda: now[0])
    listening = await nursery.start(web.serve)
    async with httpx.AsyncClient(verify=False, trust_env=False, timeout=60) as client:
        first = await client.get(listening.url())
        tag = {"If-None-Match": first.headers["ETag"]}
        assert (await client.get(listening.url(), headers=tag)).status_code == 304
        now[0] += 60
        second = await client.get(listening.url(), headers=tag)
    assert second.status_code == 200
    assert second.content != first.content
    asked_with = [row.if_none_match for row in web.ledger.rows()]
    assert asked_with == ["", first.headers["ETag"], first.headers["ETag"]]


async def test_pipelined_requests_are_answered_in_order_and_conform_to_h11(nursery):
    web = SimWeb(make_sites(["a.test"], pages=4, seed=2), clock=lambda: NOW)
    listening = await nursery.start(web.serve)
    targets = ["/", "/missing", "/style.css"]
    wire = b"".join(b"GET %s HTTP/1.1\r\nHost: a.test\r\n\r\n" % t.encode() for t in targets)
    received = await exchange(listening, wire)
    client = h11.Connection(h11.CLIENT)
    statuses = []
    for target in targets:
        client.send(h11.Request(method="GET", target=target, headers=[("Host", "a.test")]))
        client.send(h11.EndOfMessage())
        client.receive_data(received)
        received = b""
        while not isinstance(event := client.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                statuses.append(event.status_code)
        client.start_next_cycle()
    assert statuses == [200, 404, 200]
    assert [row.target for row in web.ledger.rows()] == targets


@pytest.mark.parametrize(
    "wire",
    [
        b"junk\r\n\r\n",
        b"\r\n\r\n",
        b"GET http://a.test/ HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
async def test_invalid_requests_get_400_and_are_disconnected(nursery, wire):
    web = SimWeb(make_sites(["a.test"], pages=1, seed=2), clock=lambda: NOW)
    listening = await nursery.start(web.serve)
    assert (await exchange(listening, wire)).startswith(b"HTTP/1.1 400 ")
    assert [row.status for row in web.ledger.rows()] == [400]
    # The next client is served normally.
    received = await exchange(listening, b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 200 ")


async def test_a_header_without_end_is_cut_off_and_bodies_are_discarded(nursery):
    web = SimWeb(make_sites(["a.test"], pages=1, seed=2), clock=lambda: NOW)
    listening = await nursery.start(web.serve)
    assert await exchange(listening, b"GET / HTTP/1.1\r\n" + b"x" * 64_000) == b""
    post = b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello"
    get = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
    received = await exchange(listening, post + get)
    assert received.count(b"HTTP/1.1 405 ") == 1
    assert received.count(b"HTTP/1.1 200 ") == 1
    bad = b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: -5\r\n\r\n"
    assert (await exchange(listening, bad + get)).count(b"HTTP/1.1") == 1


async def test_https_serves_the_host_of_the_certificate(nursery):
    authority = trustme.CA()
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(server_side)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    (site,) = make_sites(["localhost"], pages=2, seed=3)
    web = SimWeb([site], clock=lambda: NOW, tls=server_side)
    listening = await nursery.start(web.serve)
    async with httpx.AsyncClient(verify=trusting, trust_env=False, timeout=60) as client:
        answer = await client.get(listening.url("localhost"))
        assert answer.content == site.rendering.html(0, 0)
    # Plain HTTP on the TLS port must not stop the server.
    assert b"200" not in await exchange(listening)
    async with httpx.AsyncClient(verify=trusting, trust_env=False, timeout=60) as client:
        assert (await client.get(listening.url("localhost"))).status_code == 200


async def answer_of(nursery, one_fault):
    web = SimWeb([faulty(one=one_fault)], clock=lambda: NOW)
    listening = await nursery.start(web.serve)
    try:
        received = await exchange(listening)
    except trio.BrokenResourceError:
        received = b"RESET"
    (noted,) = web.ledger.rows()
    return noted.status, received


async def test_faults_that_cut_the_response(nursery):
    page = SiteGraph(20)
    whole = SimSite(("127.0.0.1",), page).rendering.html(0, 0)
    assert await answer_of(nursery, fault.hang()) == (0, b"")
    assert await answer_of(nursery, fault.close_unanswered()) == (0, b"")
    assert await answer_of(nursery, fault.close_unanswered(reset=True)) == (0, b"RESET")
    for cut in (fault.close_mid_body(), fault.hang_mid_body()):
        status, received = await answer_of(nursery, cut)
        head, _, body = received.partition(b"\r\n\r\n")
        assert (status, body) == (200, whole[: len(whole) // 2])
        assert b"Content-Length: %d" % len(whole) in head
    status, received = await answer_of(nursery, fault.drip(100, 0.0))
    assert received.endswith(whole)
    for by in (10, -10):
        received = (await answer_of(nursery, fault.wrong_length(by)))[1]
        assert b"Content-Length: %d\r\n" % (len(whole) + by) in received
        assert received.endswith(whole)
    assert (await answer_of(nursery, fault.slow(0.0)))[1].endswith(whole)


def test_a_response_in_small_chunks_pauses_between_them_only():
    request = SimRequest("GET", "/", {}, "one.test", "http://one.test", NOW, 0)
    response = SimResponse(200, bytes(250))
    steps = list(fault.drip(100, 5.0)(request, lambda _: response).wire)
    assert [5.0 if step == 5.0 else len(step) for step in steps] == [100, 5.0, 100, 5.0, 50]


async def test_a_gzip_bomb_is_small_on_the_wire(nursery):
    status, received = await answer_of(nursery, fault.gzip_bomb(20_000_001))
    body = received.partition(b"\r\n\r\n")[2]
    assert (status, len(gzip.decompress(body))) == (200, 20_000_001)
    assert len(body) < 30_000


@pytest.mark.parametrize("endless", [fault.endless_body(), fault.endless_header()])
async def test_endless_responses_end_when_the_client_disconnects(nursery, endless):
    web = SimWeb([faulty(one=endless)], clock=lambda: NOW)
    listening = await nursery.start(web.serve)
    open_files = len(os.listdir("/proc/self/fd"))
    async with await trio.open_tcp_stream("127.0.0.1", listening.port) as stream:
        await stream.send_all(HOME)
        received = 0
        while received < 5_000_000:
            received += len(await stream.receive_some())
    with trio.fail_after(60):
        while len(os.listdir("/proc/self/fd")) > open_files:
            await trio.lowlevel.checkpoint()


async def test_faults_that_parsers_reject(nursery):
    for broken in (fault.invalid_header(), fault.invalid_chunks(), fault.junk()):
        web = SimWeb([faulty(one=broken)], clock=lambda: NOW)
        listening = await nursery.start(web.serve)
        async with httpx.AsyncClient(verify=False, trust_env=False, timeout=60) as client:
            with pytest.raises(httpx.RemoteProtocolError):
                await client.get(listening.url())


async def test_faults_that_are_valid_responses(nursery):
    site = SimSite(
        ("127.0.0.1",),
        SiteGraph(20),
        faults={
            "/": fault.sometimes(0.0, fault.status(500)),
            "/busy": fault.busy(429, retry_after_s=120),
            "/loop": fault.redirect_loop(),
            "/chain": fault.redirect_chain(2),
            "/private": fault.redirect("http://169.254.169.254{target}"),
            "/soft": fault.soft_404(),
            "/once": fault.first_requests(1, fault.status(502)),
            "/huge": fault.huge_header(20_000),
            "/style.css": fault.wrong_content_type("video/mp4"),
            "/logo.svg": fault.wrong_content_type(""),
            "/pdf": fault.body(b"%PDF", content_type="application/pdf"),
            "/gzip": fault.corrupt_gzip(),
        },
    )
    web = SimWeb([site], clock=lambda: NOW)
    listening = await nursery.start(web.serve)
    async with httpx.AsyncClient(verify=False, trust_env=False, timeout=60) as client:

        async def get(path):
            return await client.get(listening.url(path=path))

        assert (await get("/busy")).headers["Retry-After"] == "120"
        assert (await get("/busy")).status_code == 429
        assert (await get("/loop?x")).headers["Location"] == "/loop?x"
        assert (await get("/private")).headers["Location"] == "http://169.254.169.254/private"
        chain = [await get(path) for path in ("/chain", "/chain?hop=1", "/chain?hop=2")]
        assert [answer.status_code for answer in chain] == [302, 302, 404]
        assert chain[0].headers["Location"] == "/chain?hop=1"
        assert (await get("/soft/x")).status_code == 200
        assert [(await get("/once")).status_code for _ in range(2)] == [502, 404]
        assert len((await get("/huge")).headers["X-Huge"]) == 20_000
        assert (await get("/style.css")).headers["Content-Type"] == "video/mp4"
        assert "Content-Type" not in (await get("/logo.svg")).headers
        assert (await get("/pdf")).content == b"%PDF"
        assert (await get("/")).status_code == 200
    corrupt = await exchange(listening, HOME.replace(b"/ ", b"/gzip ", 1))
    head, _, body = corrupt.partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in head
    with pytest.raises(zlib.error):
        gzip.decompress(body)


def test_a_host_belongs_to_one_site():
    with pytest.raises(OperatorError, match="claim"):
        SimWeb(make_sites(["a.test", "A.test"], pages=1, seed=1))


@pytest.mark.parametrize(
    ("arguments", "address", "status"),
    [
        (["--demo"], "127.0.0.1", 200),
        (["--addresses", "3", "--noise"], "127.1.0.3", 200),
        (["--fault", "/=busy:60", "--change-interval-s", "1", "9"], "127.0.0.1", 503),
    ],
)
def test_a_separate_process_writes_its_ledger(tmp_path, arguments, address, status):
    path = tmp_path / "ledger.jsonl"
    command = [sys.executable, "-m", "crawld.simweb", "--ledger", str(path), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        port = int(process.stdout.readline().removeprefix("PORT "))
        answer = httpx.get(f"http://{address}:{port}/", trust_env=False, timeout=60)
        (noted,) = Ledger.read(path).rows()
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
    assert answer.status_code == status
    assert (noted.host, noted.address, noted.status) == (address, address, status)


@pytest.mark.parametrize("text", ["nothing", "busy", "status:x", "slow:", ""])
def test_an_invalid_fault_is_rejected_with_a_hint(text):
    with pytest.raises(OperatorError, match=r"One of|needs a number"):
        fault.parse_fault(text)
