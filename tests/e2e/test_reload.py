"""A reload takes a config over as a whole or not at all, by SIGHUP as by the socket."""

import contextlib
import signal
from itertools import pairwise

import pytest

from tests.e2e.daemon_config import rows, site, write_config
from tests.peer.daemon import RefusedError, with_crawld, with_simweb


@pytest.fixture
def web(simweb):
    return simweb("--host=a.test", "--host=b.test", "--pages=400")


@pytest.fixture
def running(crawld, web):
    crawld.start("run", "-c", write_config(crawld, site(web.url("/", "a.test"), name="one")))
    crawld.wait_until(lambda status: status["pages"]["visited"] > 0)
    return crawld


@pytest.fixture(scope="module")
def lasting(tmp_path_factory):
    """A daemon of all tests whose reloads are refused."""
    folder = tmp_path_factory.mktemp("lasting")
    with contextlib.ExitStack() as stack:
        web = stack.enter_context(with_simweb(folder, "--host=a.test", "--pages=5"))
        crawld = stack.enter_context(with_crawld(folder / "crawld"))
        crawld.start("run", "-c", write_config(crawld, site(web.url("/", "a.test"), name="one")))
        yield crawld


def sites(crawld):
    return {each["name"]: each["host_delay_s"] for each in crawld.get("/sites")}


def test_sites_come_and_go_and_delays_change(running, web):
    two = site(web.url("/", "b.test"), name="two", host_delay_s=0.01)
    write_config(running, site(web.url("/", "a.test"), name="one", host_delay_s=0.5), two)
    assert running.post("/reload") == {"changed": ["site.one.host_delay_s", "site.two"]}
    assert sites(running) == {"one": 0.5, "two": 0.01}
    asked = len(web.ledger().requests("a.test"))
    running.wait_until(lambda _: len(web.ledger().requests("b.test")) > 5)
    running.wait_until(lambda _: len(web.ledger().requests("a.test")) > asked + 2)
    late = web.ledger().requests("a.test")[asked:]
    gaps = [later.complete_s - earlier.complete_s for earlier, later in pairwise(late)]
    assert min(gaps) >= 0.5
    write_config(running, two)
    assert running.post("/reload") == {"changed": ["site.one"]}
    running.post("/drain")
    asked = len(web.ledger().requests("a.test"))
    running.post("/resume", {})
    before = len(web.ledger())
    running.wait_until(lambda _: len(web.ledger()) > before + 5)
    assert len(web.ledger().requests("a.test")) == asked
    assert rows(running, "SELECT count(*) FROM page JOIN version USING (page_id)") > [(asked - 9,)]


BROKEN = {
    "half-written": lambda text: text[: len(text) // 2],
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
def test_a_config_that_does_not_hold_changes_nothing(lasting, how):
    path = lasting.folder / "crawld.toml"
    good = path.read_text()
    before, refusals = sites(lasting), lasting.output().count("reload_refused")
    path.write_text(BROKEN[how](good))
    with pytest.raises(RefusedError) as refused:
        lasting.post("/reload")
    assert refused.value.status == 409
    lasting.process.send(signal.SIGHUP)
    lasting.wait_until(lambda _: lasting.output().count("reload_refused") > refusals)
    assert sites(lasting) == before
    path.write_text(good)
    assert lasting.post("/reload") == {"changed": []}


def test_a_missing_file_is_said(lasting):
    path = lasting.folder / "crawld.toml"
    moved = path.rename(path.with_suffix(".moved"))
    with pytest.raises(RefusedError, match=r"crawld\.toml"):
        lasting.post("/reload")
    moved.rename(path)
    assert lasting.post("/reload") == {"changed": []}


def test_sighup_reloads(running, web):
    write_config(running, site(web.url("/", "a.test"), name="one", host_delay_s=0.5))
    running.process.send(signal.SIGHUP)
    running.wait_until(lambda each: each[0]["host_delay_s"] == 0.5, "/sites")


def test_narrowed_scopes_leave_pages_out_and_wider_ones_bring_them_back(crawld, simweb):
    web = simweb("--host=a.test", "--pages=40")
    crawld.start("run", "-c", write_config(crawld, site(web.url("/", "a.test"), name="one")))
    crawld.wait_until(lambda status: status["pages"]["visited"] > 5)
    narrow = site(web.url("/", "a.test"), name="one", exclude=["prefix:/wiki/"])
    write_config(crawld, narrow)
    crawld.post("/reload")
    crawld.wait_until(lambda status: not status["slots"]["on_turn"])
    asked = len(web.ledger())
    assert not crawld.process.exits_within(0.5)
    assert len(web.ledger()) <= asked + 1
    write_config(crawld, site(web.url("/", "a.test"), name="one"))
    crawld.post("/reload")
    crawld.wait_until(lambda status: status["pages"]["visited"] == 40)


def test_a_mirror_has_no_config_to_reload(crawld, simweb):
    web = simweb("--pages=3")
    crawld.start("mirror", web.url())
    with pytest.raises(RefusedError, match="no config file"):
        crawld.post("/reload")
    crawld.process.send(signal.SIGHUP)
    crawld.wait_until(lambda _: "reload_refused" in crawld.output())
