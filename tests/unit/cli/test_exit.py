"""The end of a process whose abandoned calls still run in threads."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
from functools import partial
import can_ada, trio
from crawld.cli import main as program
from crawld.workers import THREADS, calls_under_way

begun = threading.Event()

def work(*_):
    url = can_ada.parse("http://h.example/")  # nanobind reports it as leaked
    begun.set()
    threading.Event().wait()

async def crawl():
    async with trio.open_nursery() as nursery:
        if sys.argv[1] == "thread":
            nursery.start_soon(partial(THREADS.run, work, abandon_on_cancel=True))
        elif sys.argv[1] == "connection":
            connection = await THREADS.connect(":memory:", 6)
            nursery.start_soon(connection.run, work)
        else:
            await THREADS.run(print, abandon_on_cancel=True)
            begun.set()
        await trio.to_thread.run_sync(begun.wait)
        nursery.cancel_scope.cancel()

def app(prog_name):
    trio.run(crawl)
    print(calls_under_way())
    sys.exit(3)

program.app = app
program.main()
"""


@pytest.mark.parametrize(("what", "left"), [("thread", 1), ("connection", 1), ("nothing", 0)])
def test_a_program_ends_quietly_whatever_its_threads_still_do(what, left):
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, what], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (3, "")
    assert ended.stdout.split() == [str(left)]


@pytest.mark.parametrize(
    "line",
    [
        "serve --host a.* --db none.db",
        "mirror http://a.*/",
        "mirror http://me:secret@h.example/",
        "mirror ftp://h.example/",
        "mirror http://h.example/ --proxy http://a.*:1",
    ],
)
def test_a_refused_url_ends_without_noise_of_libraries(line, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "crawld.cli.main", *line.split()],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert ended.returncode == 2
    assert "nanobind" not in ended.stderr
    assert len(ended.stderr.splitlines()) <= 4
