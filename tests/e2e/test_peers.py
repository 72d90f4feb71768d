"""The programs behind the other end-to-end tests behave as those tests assume."""

import json
import os
import select
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from selectolax.lexbor import LexborHTMLParser

from tests.peer import Peer, require_peer
from tests.peer import peers as known_peers
from tests.peer.crawld_process import ControlError
from tests.peer.fork_server import ForkServer
from tests.peer.nginx import (
    PRECISION_S,
    NginxOptions,
    RateLimit,
    documentation_tree,
    with_nginx_config,
)
from tests.peer.process import ManagedProcess, ProcessError
from tests.peer.wiki_dump import EPOCH_AT, Revision, WikiPage, make_histories, to_xml_dump

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def no_proxy():
    with httpx.Client(trust_env=False, timeout=60) as client:
        yield client


def links(page):
    """Return the absolute targets of a page's links, without fragments."""
    hrefs = LexborHTMLParser(page.content).css("a[href]")
    return {str(page.url.join(a.attributes["href"] or "").copy_with(fragment=None)) for a in hrefs}


class TestNginx:
    def test_serves_a_real_documentation_tree(self, nginx, no_proxy):
        server = nginx({"127.0.0.1": documentation_tree()})
        start = no_proxy.get(server.url())
        assert (start.status_code, start.headers["content-encoding"]) == (200, "gzip")
        assert start.headers["content-type"] == "text/html"
        assert b"SQLite" in start.content
        inside = {url for url in links(start) if url.startswith(server.url()) and ".html" in url}
        assert len(inside) > 10
        assert all(no_proxy.get(url).status_code == 200 for url in inside)
        assert no_proxy.get(server.url("/no-such-page.html")).status_code == 404

    def test_revalidates_by_either_validator_until_the_file_changes(
        self, nginx, no_proxy, tmp_path
    ):
        page = tmp_path / "tree" / "index.html"
        page.parent.mkdir()
        page.write_text("first")
        server = nginx({"127.0.0.1": page.parent})
        seen = no_proxy.get(server.url()).headers
        by_tag = {"If-None-Match": seen["etag"]}
        by_date = {"If-Modified-Since": seen["last-modified"]}
        for condition in by_tag, by_date:
            assert no_proxy.get(server.url(), headers=condition).status_code == 304
        page.write_text("second")
        os.utime(page, (1_000_000_000, 1_000_000_000))
        for condition in by_tag, by_date:
            assert no_proxy.get(server.url(), headers=condition).text == "second"

    def test_keeps_virtual_hosts_apart_on_one_port(self, nginx, no_proxy, tmp_path):
        hosts = ("127.0.0.1", "127.0.0.9", "docs.test")
        for host in hosts:
            (tmp_path / host).mkdir()
            (tmp_path / host / "index.html").write_text(host)
        server = nginx({host: tmp_path / host for host in hosts})
        assert [no_proxy.get(server.url(host=host)).text for host in hosts[:2]] == list(hosts[:2])
        named = no_proxy.get(server.url(), headers={"Host": "docs.test"})
        assert named.text == "docs.test"
        assert [(row.host, row.address) for row in server.ledger().rows()] == [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.9", "127.0.0.9"),
            ("docs.test", "127.0.0.1"),
        ]

    def test_ledger_holds_every_request_and_its_time(self, nginx, no_proxy, tmp_path):
        (tmp_path / "page.html").write_text("page")
        server = nginx({"127.0.0.1": tmp_path})
        count = 200
        for number in range(count):
            no_proxy.get(server.url(f"/page.html?{number}"), headers={"User-Agent": 'a "b" \\'})
        ledger = server.ledger()
        rows = list(ledger.rows())
        assert [row.target for row in rows] == [f"/page.html?{n}" for n in range(count)]
        assert {(row.status, row.user_agent) for row in rows} == {(200, 'a "b" \\')}
        # The client waits for each response, so no gap is negative beyond the precision.
        assert ledger.spacings()["127.0.0.1"] >= -PRECISION_S
        assert len(ledger.violations(delay_s=3600)) == count - 1

    def test_limits_the_rate_with_a_retry_after(self, nginx, no_proxy, tmp_path):
        (tmp_path / "index.html").write_text("page")
        options = NginxOptions(limit=RateLimit(rate="1r/m", burst=1, status=503), retry_after_s=7)
        server = nginx({"127.0.0.1": tmp_path}, options)
        answers = [no_proxy.get(server.url()) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 503]
        assert [a.headers.get("retry-after") for a in answers] == [None, None, "7"]

    def test_answers_503_only_while_down(self, nginx, no_proxy, tmp_path):
        (tmp_path / "index.html").write_text("page")
        server = nginx({"127.0.0.1": tmp_path})
        with server.down():
            assert no_proxy.get(server.url()).headers["retry-after"] == "2"
            assert [row.status for row in server.ledger().rows()] == [503]
        assert no_proxy.get(server.url()).status_code == 200

    @pytest.mark.parametrize(("h2", "version"), [(False, "HTTP/1.1"), (True, "HTTP/2")])
    def test_serves_tls_with_its_certificate(self, nginx, authority, tmp_path, h2, version):
        (tmp_path / "index.html").write_text("page")
        server = nginx({"127.0.0.1": tmp_path}, NginxOptions(authority=authority, h2=h2))
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        with httpx.Client(verify=trusting, http2=True, trust_env=False, timeout=60) as client:
            answer = client.get(server.url(tls=True))
        assert (answer.text, answer.http_version) == ("page", version)
        with (
            httpx.Client(trust_env=False, timeout=60) as stranger,
            pytest.raises(httpx.ConnectError),
        ):
            stranger.get(server.url(tls=True))

    @pytest.mark.parametrize(("autoindex", "status"), [(False, 403), (True, 200)])
    def test_lists_folders_only_if_enabled(self, nginx, no_proxy, tmp_path, autoindex, status):
        (tmp_path / "folder").mkdir()
        server = nginx({"127.0.0.1": tmp_path}, NginxOptions(autoindex=autoindex))
        assert no_proxy.get(server.url("/folder/")).status_code == status

    def test_shows_what_is_wrong_with_its_configuration(self, tmp_path):
        served = with_nginx_config({"127.0.0.1": "nonsense;"}, tmp_path)
        with pytest.raises(ProcessError, match="unknown directive"):
            served.__enter__()

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can try it as somebody else")
    def test_runs_without_root(self, tmp_path):
        """Run the harness as user nobody in a folder of nobody."""
        require_peer("nginx")
        script = (
            "import sys, tempfile, urllib.request; from pathlib import Path;"
            "from tests.peer.nginx import with_nginx\n"
            "with tempfile.TemporaryDirectory() as folder:\n"
            "    (Path(folder) / 'index.html').write_text('served')\n"
            "    with with_nginx(Path(folder) / 'n', {'127.0.0.1': Path(folder)}) as nginx:\n"
            "        print(urllib.request.urlopen(nginx.url()).read().decode())\n"
        )
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "no_proxy": "*"}

        def python(program):
            command = [*nobody, sys.executable, "-c", program]
            return subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False
            )

        if python("import trustme, crawld.simweb, tests.peer").returncode:
            pytest.skip("this Python or this checkout is not readable for nobody")
        done = python(script)
        assert (done.stdout, done.returncode) == ("served\n", 0), done.stderr


class TestMediaWiki:
    def test_answers_its_api_and_page_views(self, mediawiki, no_proxy):
        site = mediawiki.api(action="query", meta="siteinfo|userinfo")["query"]
        assert site["general"]["server"] == mediawiki.origin
        assert "anon" in site["userinfo"]
        article = mediawiki.pages[0]
        view = no_proxy.get(mediawiki.url(article.title))
        assert view.status_code == 200
        heading = LexborHTMLParser(view.content).css_first("h1#firstHeading")
        assert heading.text() == article.title
        assert no_proxy.get(mediawiki.url("Never written")).status_code == 404
        assert no_proxy.get(f"{mediawiki.origin}/robots.txt").text.startswith("User-agent: *")

    def test_has_every_revision_that_was_imported(self, mediawiki):
        for page in mediawiki.pages:
            answer = mediawiki.api(
                action="query",
                titles=page.title,
                prop="revisions",
                rvprop="timestamp|content|comment",
                rvslots="main",
                rvlimit=50,
                rvdir="newer",
            )
            found = [
                (revision["slots"]["main"]["content"], revision["comment"])
                for revision in answer["query"]["pages"][0]["revisions"]
            ]
            assert found == [(revision.text, revision.comment) for revision in page.revisions]

    def test_links_every_article_from_the_main_page(self, mediawiki, no_proxy):
        waiting, seen = {mediawiki.url()}, set()
        while waiting - seen:
            url = (waiting - seen).pop()
            seen.add(url)
            view = no_proxy.get(url)
            assert view.status_code == 200, url
            inside = LexborHTMLParser(view.content).css("#mw-content-text a[href^='/wiki/']")
            waiting |= {mediawiki.origin + a.attributes["href"].partition("#")[0] for a in inside}
        assert seen >= {mediawiki.url(page.title) for page in mediawiki.pages[:30]}

    def test_revalidates_until_an_edit(self, mediawiki, no_proxy):
        article = mediawiki.pages[1]
        view = no_proxy.get(mediawiki.url(article.title))
        assert "etag" not in view.headers
        condition = {"If-Modified-Since": view.headers["last-modified"]}
        url = mediawiki.url(article.title)
        assert no_proxy.get(url, headers=condition).status_code == 304
        revision = mediawiki.edit(article.title, "A text with the word marmalade.")
        assert revision > 0
        edited = no_proxy.get(url, headers=condition)
        assert (edited.status_code, "marmalade" in edited.text) == (200, True)

    def test_last_modified_is_that_of_the_revision(self, mediawiki, no_proxy):
        view = no_proxy.get(mediawiki.url(mediawiki.pages[2].title))
        assert "2026" not in view.headers["last-modified"]
        assert int(view.headers["last-modified"].split()[3]) <= 2024
        assert all(page.revisions[-1].at < EPOCH_AT for page in mediawiki.pages)

    def test_moves_deletes_and_restores(self, mediawiki, no_proxy):
        old, gone = mediawiki.pages[3].title, mediawiki.pages[4].title
        mediawiki.move(old, "A new name")
        moved = no_proxy.get(mediawiki.url(old))
        assert (moved.status_code, "A new name" in moved.text) == (200, True)
        mediawiki.delete(gone)
        assert no_proxy.get(mediawiki.url(gone)).status_code == 404
        mediawiki.undelete(gone)
        assert no_proxy.get(mediawiki.url(gone)).status_code == 200
        mediawiki.move("A new name", "Without a trace", redirect=False)
        assert no_proxy.get(mediawiki.url("A new name")).status_code == 404

    def test_switches_act_while_it_runs(self, mediawiki, no_proxy):
        with mediawiki.lag(9):
            lagged = mediawiki.api(action="query", meta="siteinfo", maxlag=5)
            assert (lagged["error"]["code"], lagged["error"]["lag"]) == ("maxlag", 9)
        assert "error" not in mediawiki.api(action="query", meta="siteinfo", maxlag=5)
        refused = pytest.raises(AssertionError, match="a copy is made")
        with mediawiki.read_only("a copy is made"), refused:
            mediawiki.edit("Somewhere", "text")
        assert mediawiki.edit("Somewhere", "text") > 0
        with mediawiki.nginx.down():
            assert no_proxy.get(mediawiki.url()).headers["retry-after"] == "2"
        mediawiki.set_robots(None)
        assert no_proxy.get(f"{mediawiki.origin}/robots.txt").status_code == 404
        mediawiki.set_robots("User-agent: *\nDisallow: /\n")
        assert "Disallow: /\n" in no_proxy.get(f"{mediawiki.origin}/robots.txt").text

    def test_ledger_sees_the_requests_of_a_crawl(self, mediawiki, no_proxy):
        titles = [page.title for page in mediawiki.pages]
        for title in titles:
            no_proxy.get(mediawiki.url(title))
        targets = [row.target for row in mediawiki.ledger().rows()]
        assert targets == [mediawiki.url(title).removeprefix(mediawiki.origin) for title in titles]

    def test_imports_later_revisions_and_runs_its_jobs(self, mediawiki):
        article = mediawiki.pages[5]
        later = Revision(EPOCH_AT - 1, "The text of the last second.", "late")
        mediawiki.import_pages([WikiPage(article.title, (later,))])
        mediawiki.run_jobs()
        answer = mediawiki.api(action="parse", page=article.title, prop="wikitext")
        assert answer["parse"]["wikitext"] == later.text
        recent = mediawiki.api(action="query", list="recentchanges", rcprop="title", rclimit=1)
        assert "error" not in recent


def test_a_dump_is_the_same_every_time():
    assert to_xml_dump(make_histories(20, 5, seed=3)) == to_xml_dump(make_histories(20, 5, seed=3))
    assert to_xml_dump(make_histories(20, 5, seed=3)) != to_xml_dump(make_histories(20, 5, seed=4))
    for page in make_histories(200, 6):
        times = [revision.at for revision in page.revisions]
        assert times == sorted(set(times))
        assert times[-1] < EPOCH_AT


class TestDaemon:
    def test_a_simulated_web_runs_and_has_a_ledger(self, simweb, no_proxy):
        web = simweb("--pages", "5", "--host", "127.0.0.1", "--host", "127.0.0.2")
        for host in ("127.0.0.1", "127.0.0.2"):
            assert no_proxy.get(web.url(host=host)).status_code == 200
        assert web.ledger().hosts() == {"127.0.0.1": 1, "127.0.0.2": 1}

    def test_a_daemon_is_queried_killed_restarted_and_terminated(self, crawld, simweb):
        web = simweb("--pages", "5")
        mirror = ("mirror", web.url(), "--delay", "0.01", "--depth", "9", "--json")
        crawld.start(*mirror)
        first = crawld.wait_until(lambda status: status["pages_in_all"] >= 5)
        assert first["pid"] == crawld.process.pid
        crawld.kill()
        assert crawld.process.returncode == -signal.SIGKILL
        with pytest.raises(OSError, match="refused"):
            crawld.get("/status")
        crawld.start(*mirror)
        assert crawld.get("/status")["pages_in_all"] >= 5
        with pytest.raises(ControlError) as refused:
            crawld.get("/no-such-thing")
        assert refused.value.status == 404
        shown = crawld.crawlctl("status", "--json")
        assert (shown.returncode, json.loads(shown.stdout)["pid"]) == (0, crawld.process.pid)
        assert crawld.terminate() == 0, crawld.output()
        assert len(web.ledger()) >= 5
        assert crawld.crawld("doctor", "--db", crawld.db).returncode == 0

    def test_a_daemon_is_interrupted(self, crawld, simweb):
        crawld.start("mirror", simweb("--pages", "5").url(), "--delay", "0.01", "--json")
        assert crawld.interrupt() == 0, crawld.output()

    def test_a_daemon_that_does_not_start_shows_why(self, crawld):
        with pytest.raises(ProcessError, match="no-such-command"):
            crawld.start("no-such-command")


class TestProcess:
    def test_keeps_output_and_exit_code(self, tmp_path):
        process = ManagedProcess(
            ["sh", "-c", "echo out; echo err >&2; exit 7"], tmp_path, name="sh"
        )
        assert process.wait() == 7
        assert (process.stdout.read_text(), process.stderr.read_text()) == ("out\n", "err\n")
        assert (process.returncode, process.end()) == (7, 7)

    def test_kills_its_children(self, tmp_path):
        script = "tail -f /dev/null & echo $!; wait"
        parent = ManagedProcess(["sh", "-c", script], tmp_path, name="sh")
        while not parent.stdout.read_text().endswith("\n"):
            assert not parent.exits_within(0.01)
        child = os.pidfd_open(int(parent.stdout.read_text()))
        try:
            assert parent.end(signal.SIGKILL) == -signal.SIGKILL
            assert select.select([child], [], [], 20)[0]
        finally:
            os.close(child)

    def test_an_error_shows_the_output_of_a_stuck_program(self, tmp_path):
        stuck = ManagedProcess(["sh", "-c", "exec tail -f /dev/null"], tmp_path, name="s")
        with pytest.raises(ProcessError, match="still runs"):
            stuck.wait(0.01)
        assert stuck.end() == -signal.SIGTERM


class TestForkServer:
    """A program that is forked cannot be told from one that is executed."""

    @pytest.mark.parametrize(
        ("module", "arguments"),
        [
            ("crawld.cli.main", ("version",)),
            ("crawld.cli.main", ("run", "--help")),
            ("crawld.cli.main", ("no-such-command",)),
            ("crawld.cli.main", ("doctor", "--db", "beside.db")),
            ("crawld.cli.crawlctl", ("status",)),
            ("crawld.simweb", ("--pages", "many")),
            ("runpy", ("no_such_module",)),
        ],
    )
    def test_output_and_exit_code_are_the_same(self, tmp_path, module, arguments):
        where = {"CRAWLD_SOCKET": str(tmp_path / "nobody.sock"), "COLUMNS": "70"}
        seen = []
        for forked in (False, True):
            program = [sys.executable, "-m", module, *arguments]
            process = ManagedProcess(
                program, tmp_path, name=f"p-{forked}", environment=where, forked=forked
            )
            assert process.wait() is process.returncode
            error = process.stderr.read_text().rsplit("\n", 2)[-2:]  # a traceback names its frames
            seen.append((process.returncode, process.stdout.read_text(), error))
        assert seen[0] == seen[1]
        assert any(seen[0])

    def test_it_has_its_own_session_signals_and_directory(self, tmp_path):
        program = [sys.executable, "-m", "crawld.simweb", "--ledger", "here.jsonl"]
        process = ManagedProcess(program, tmp_path, name="simweb", forked=True)
        try:
            while not process.stdout.read_text().startswith("PORT "):
                assert not process.exits_within(0.01), process.stderr.read_text()
            assert os.getsid(process.pid) == process.pid
            assert (tmp_path / "here.jsonl").exists()
        finally:
            assert process.end(signal.SIGKILL) == -signal.SIGKILL
        assert process.end() == -signal.SIGKILL

    def test_it_ends_with_its_server(self, tmp_path):
        server = ForkServer()
        with (tmp_path / "out").open("wb") as out:
            program = server.start(
                "crawld.simweb",
                [],
                directory=tmp_path,
                environment=os.environ,
                output=(out.fileno(), out.fileno()),
            )
        child = os.pidfd_open(program.pid)
        try:
            server.end()
            assert select.select([child], [], [], 20)[0]
        finally:
            os.close(child)


class TestPolicy:
    ABSENT = Peer("absent", "no-such-program", ("absent-cli", "absent-data"))

    def test_an_installed_peer_is_found(self):
        assert require_peer(Peer("shell", "sh", ())).name == "sh"
        assert all(peer.packages for peer in known_peers().values())

    @pytest.mark.parametrize("ci", ["", "false"])
    def test_a_missing_peer_skips_and_shows_the_install_command(self, monkeypatch, ci):
        monkeypatch.setenv("CI", ci)
        with pytest.raises(pytest.skip.Exception, match="apt-get install absent-cli absent-data"):
            require_peer(Peer("shell", "sh", ()), self.ABSENT)

    def test_a_missing_peer_fails_in_ci(self, monkeypatch):
        monkeypatch.setenv("CI", "true")
        with pytest.raises(pytest.fail.Exception, match="absent missing"):
            require_peer(self.ABSENT)
