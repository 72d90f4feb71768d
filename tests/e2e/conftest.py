"""Fixtures that run real programs, and the check that no process outlives its test."""

import contextlib
import fcntl
import os
from pathlib import Path

import pytest
import trustme

from tests.peer.crawld_process import with_crawld, with_simweb
from tests.peer.fork_server import server_pid
from tests.peer.mediawiki import make_template, template_of, with_mediawiki
from tests.peer.nginx import with_nginx

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("e2e")


def children():
    """Return the ids of children, of this process and of its fork server, that nobody has reaped.

    The fork server is none of them.
    """
    server, found = server_pid(), set()
    for parent in (os.getpid(), server):
        if parent is None:
            continue
        for task in Path(f"/proc/{parent}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):  # the thread ended after it was listed
                found.update((task / "children").read_text().split())
    return found - {str(server)}


@pytest.fixture(autouse=True)
def _no_process_left():
    before = children()
    yield
    assert children() <= before, "processes outlive their test"


@pytest.fixture
def cleanup(_no_process_left):
    """Return an exit stack, closed before the check that no process is left."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def authority():
    """Return a certificate authority that no client trusts by default."""
    return trustme.CA()


@pytest.fixture
def nginx(cleanup, tmp_path):
    """Return a function that serves trees: `nginx({"127.0.0.1": folder}, NginxOptions(...))`."""
    count = iter(range(1000))

    def serve(trees, options=None):
        prefix = tmp_path / f"nginx-{next(count)}"
        return cleanup.enter_context(with_nginx(prefix, trees, options))

    return serve


@pytest.fixture(scope="session")
def wiki_template(tmp_path_factory):
    """The template of each test's wiki: 30 articles with 4 revisions each.

    The processes of a parallel run share it: to make it takes 5 CPU seconds.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "wiki-template"
    with (shared / "wiki-template.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            made = make_template(tmp_path_factory.mktemp("wiki") / "template")
            made.folder.rename(folder)
    return template_of(folder)


@pytest.fixture
def mediawiki(cleanup, tmp_path, wiki_template):
    """A running, seeded wiki of this test only; `mediawiki.pages` are its initial pages."""
    return cleanup.enter_context(with_mediawiki(tmp_path / "wiki", wiki_template))


@pytest.fixture
def simweb(cleanup, tmp_path):
    """Return a function that runs a simulated web: `simweb("--pages", "20")`."""
    count = iter(range(1000))

    def serve(*arguments):
        folder = tmp_path / f"simweb-{next(count)}"
        return cleanup.enter_context(with_simweb(folder, *arguments))

    return serve


@pytest.fixture
def crawld(cleanup, tmp_path):
    """A folder to run daemons in: `crawld.start("mirror", url)`."""
    return cleanup.enter_context(with_crawld(tmp_path / "crawld"))
