"""Settings of all tests: Hypothesis profiles, parameter names, and process state restored."""

import functools
import gc
import os
import shutil
import signal
import subprocess
import sys
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, settings

from crawld.core.content import language
from crawld.daemon.api import control_socket
from crawld.daemon.process import COLLECTOR_THRESHOLDS
from crawld.store.engine import migrate
from tests import daemon_memory
from tests.peer.fork_server import end_fork_server

# A deadline, or a limit on the time to draw examples, would test the speed of the machine.
settings.register_profile("crawld", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# CI runs the same examples each time, so that a failure comes from the change under test. Other
# runs look for new examples.
settings.register_profile("ci", settings.get_profile("crawld"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "crawld")


# Settings of whoever starts the tests; a test that needs one sets it.
for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "CRAWLD_SOCKET"):
    os.environ.pop(name, None)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Shells start programs in the background so, and the programs of the tests would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


UNICODE_TABLES = "from hypothesis import strategies as st; st.text().validate()"


def pytest_configure(config):
    """Have Hypothesis write its tables of Unicode: 200 MB and 2 s, once instead of per worker."""
    root = config.rootpath
    if not hasattr(config, "workerinput") and not (root / ".hypothesis" / "unicode_data").exists():
        subprocess.run([sys.executable, "-c", UNICODE_TABLES], cwd=root, check=True)


def pytest_xdist_auto_num_workers(config):
    """Use one process more than cores: some tests wait, in all half a minute of unit tests."""
    return len(os.sched_getaffinity(0)) + 1


WAITING = ("daemon", "e2e", "hostile")
"""Folders of tests that mostly wait, for delays and for other programs; the others compute."""


def pytest_collection_modifyitems(config, items):
    """Spread the files of each waiting folder over the others, so that waits cost no time.

    Each process of a parallel run begins with its own part of the list. Files stay whole, and those
    of a folder keep their order.
    """
    root = config.rootpath / "tests"
    files = defaultdict(lambda: defaultdict(list))
    for item in items:
        folder = item.path.relative_to(root).parts[0] if root in item.path.parents else ""
        files[folder if folder in WAITING else ""][item.path].append(item)
    places = []
    for folder, tests_of in files.items():
        count, before = sum(map(len, tests_of.values())), 0
        for tests in tests_of.values():
            places.append((before / count, folder, tests))
            before += len(tests)
    places.sort(key=lambda place: place[:2])
    items[:] = [item for _, _, tests in places for item in tests]


def pytest_make_parametrize_id(val, argname):
    """Name binary parameters by their argument.

    Compressed data can hold the time, and the processes of a parallel run need equal test names.
    """
    return argname if isinstance(val, bytes) and not val.isascii() else None


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that a daemon handles."""


@pytest.fixture(autouse=True)
def _restore_signal_handlers():
    """Restore the signal handlers after the test.

    Of two daemons in one test the first may end first; the second then restores the handler of the
    first, and a later signal would fail the test that runs then.
    """
    before = [signal.getsignal(each) for each in SIGNALS]
    yield
    for each, handler in zip(SIGNALS, before, strict=True):
        signal.signal(each, handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect tests without garbage collection: hardly any is found, and it takes 1 s a process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """Exempt all collected tests from garbage collection, which each start of a daemon runs."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _end_fork_server():
    yield
    end_fork_server()


FREED_AT_ONCE = 10
"""Daemons whose memory is freed together; a collection takes 30 ms."""

_ended_daemons = 0


@pytest.fixture(autouse=True, scope="session")
def _freeze_no_daemons():
    """Let daemons of tests freeze no objects: to find those of ended ones would take 0.3 s.

    It would look at all collected tests, which are frozen too.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            control_socket, "tune_collector", lambda: gc.set_threshold(*COLLECTOR_THRESHOLDS)
        )
        yield


@pytest.fixture(autouse=True)
def _free_daemons():
    """Free the memory of daemons that ran in tests."""
    global _ended_daemons
    before = gc.get_threshold()
    yield
    if gc.get_threshold() != before:
        gc.set_threshold(*before)
        _ended_daemons += 1
        if _ended_daemons % FREED_AT_ONCE == 0:
            gc.collect()
    daemon_memory.return_if_large()


@pytest.fixture(autouse=True, scope="module")
def _drop_model_of_languages():
    """Drop the model of languages, 60 MB, which few files of tests load."""
    yield
    language._identifier.cache_clear()


@pytest.fixture(autouse=True, scope="session")
def _copy_new_databases(tmp_path_factory):
    """Give new files their tables by a copy of a migrated file: 1 ms instead of 30.

    Tests of migrations call `migrate.migrate.__wrapped__`.
    """
    original, lines = migrate.migrate, []
    template = tmp_path_factory.mktemp("template") / "new.db"
    before = original(template, lines.append)

    @functools.wraps(original)
    def copy(path, progress=lambda line: None, **other):
        if other or path.exists():
            return original(path, progress, **other)
        try:
            shutil.copyfile(template, path)
        except OSError:
            path.unlink(missing_ok=True)
            return original(path, progress)
        for line in lines:
            progress(line)
        return before

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(migrate, "migrate", copy)
        yield
