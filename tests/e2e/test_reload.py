"""A reload by SIGHUP or by the socket applies a config completely or not at all."""

import contextlib
import signal
from itertools import pairwise

import pytest

from tests.e2e.daemon_config import query_rows, site, start_daemon, write_config
from tests.peer.crawld_process import ControlError, with_crawld, with_simweb


@pytest.fixture
def web(simweb):
    return simweb("--host=a.test", "--host=b.test", "--pages=400")


@pytest.fixture
def daemon(crawld, web):
    start_daemon(crawld, one(web))
    crawld.wait_until(lambda status: status["pages"]["visited"] > 0)
    return crawld


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory):
    """A daemon shared by tests whose reloads are rejected."""
    folder = tmp_path_factory.mktemp("lasting")
    with contextlib.ExitStack() as stack:
        web = stack.enter_context(with_simweb(folder, "--host=a.test", "--pages=5"))
        crawld = stack.enter_context(with_crawld(folder / "crawld"))
        start_daemon(crawld, one(web))
        yield crawld


def one(web, **more):
    """Return the [[site]] table of the site `one`."""
    return site(web.url("/", "a.test"), name="one", **more)


def sites(crawld):
    return {each["name"]: each["host_delay_s"] for each in crawld.get("/sites")}


def test_sites_are_added_and_removed_and_delays_change(daemon, web):
    two = site(web.url("/", "b.test"), name="two", host_delay_s=0.01)
    write_config(daemon, one(web, host_delay_s=0.5), two)
    assert daemon.post("/reload") == {"changed": ["site.one.host_delay_s", "site.two"]}
    assert sites(daemon) == {"one": 0.5, "two": 0.01}
    asked = len(web.ledger().requests("a.test"))
    daemon.wait_until(lambda _: len(web.ledger().requests("b.test")) > 5)
    daemon.wait_until(lambda _: len(web.ledger().requests("a.test")) > asked + 2)
    late = web.ledger().requests("a.test")[asked:]
    gaps = [later.complete_s - earlier.complete_s for earlier, later in pairwise(late)]
    assert min(gaps) >= 0.5
    write_config(daemon, two)
    assert daemon.post("/reload") == {"changed": ["site.one"]}
    daemon.post("/drain")
    asked = len(web.ledger().requests("a.test"))
    daemon.post("/resume", {})
    before = len(web.ledger())
    daemon.wait_until(lambda _: len(web.ledger()) > before + 5)
    assert len(web.ledger().requests("a.test")) == asked
    assert query_rows(daemon, "SELECT count(*) FROM page JOIN version USING (page_id)") > [
        (asked - 9,)
    ]


BROKEN = {
    "half-written": lambda text: text[: text.index("http://a.test") + 4],
    "unknown key": lambda text: text.replace("host_delay_s", "host_dealy_s"),
    "negative": lambda text: text.replace("host_delay_s = 0.05", "host_delay_s = -1.0"),
    "no URL": lambda text: text.replace("http://a.test", "nonsense://a.test"),
    "restart needed": lambda text: text.replace("[daemon]", "[daemon]\nmax_in_flight = 3"),
    "one good, one bad": lambda text: (
        text + '[[site]]\nname = "new"\nseeds = ["http://b.test/"]\nheaders_file = "/nonexistent"\n'
    ),
    "empty file": lambda text: "\0" * 100,
}


@pytest.mark.parametrize("how", BROKEN)
def test_an_invalid_config_changes_nothing(shared_daemon, how):
    path = shared_daemon.folder / "crawld.toml"
    good = path.read_text()
    before, refusals = sites(shared_daemon), shared_daemon.output().count("reload_refused")
    path.write_text(BROKEN[how](good))
    with pytest.raises(ControlError) as refused:
        shared_daemon.post("/reload")
    assert refused.value.status == 409
    shared_daemon.process.send(signal.SIGHUP)
    shared_daemon.wait_until(lambda _: shared_daemon.output().count("reload_refused") > refusals)
    assert sites(shared_daemon) == before
    path.write_text(good)
    assert shared_daemon.post("/reload") == {"changed": []}


def test_a_missing_config_is_reported(shared_daemon):
    path = shared_daemon.folder / "crawld.toml"
    moved = path.rename(path.with_suffix(".moved"))
    with pytest.raises(ControlError, match=r"crawld\.toml"):
        shared_daemon.post("/reload")
    moved.rename(path)
    assert shared_daemon.post("/reload") == {"changed": []}


def test_sighup_reloads(daemon, web):
    write_config(daemon, one(web, host_delay_s=0.5))
    daemon.process.send(signal.SIGHUP)
    daemon.wait_until(lambda each: each[0]["host_delay_s"] == 0.5, "/sites")


def test_a_narrower_scope_excludes_pages_and_a_wider_one_readmits_them(crawld, simweb):
    web = simweb("--host=a.test", "--pages=40")
    start_daemon(crawld, one(web))
    crawld.wait_until(lambda status: status["pages"]["visited"] > 5)
    write_config(crawld, one(web, exclude=["prefix:/wiki/"]))
    crawld.post("/reload")
    crawld.wait_until(lambda status: not status["slots"]["on_turn"])
    asked = len(web.ledger())
    assert not crawld.process.exits_within(0.5)
    assert len(web.ledger()) <= asked + 1
    write_config(crawld, one(web))
    crawld.post("/reload")
    crawld.wait_until(lambda status: status["pages"]["visited"] == 40)


def test_a_mirror_has_no_config_to_reload(crawld, simweb):
    web = simweb("--pages=3")
    crawld.start("mirror", web.url())
    with pytest.raises(ControlError, match="no config file"):
        crawld.post("/reload")
    crawld.process.send(signal.SIGHUP)
    crawld.wait_until(lambda _: "reload_refused" in crawld.output())
