"""`crawlctl history`, `page` and `diff` on a running mirror."""

import json
import subprocess
import sys

import pytest


def versions(command, running):
    """Wait for the first visit of the seed; return its versions."""
    arguments = ("crawlctl", "--json", "--socket", running.socket, "history", running.url)
    for _ in range(1_200):
        if found := json.loads(command(*arguments).out)["versions"]:
            return found
        running.process.exits_within(0.05)
    raise AssertionError("the seed was not visited")


def test_history_page_and_diff(command, running):
    socket = ("--socket", running.socket)
    [version] = versions(command, running)
    named = command("crawlctl", *socket, "page", running.url, "--at", version["version_id"])
    assert "not yet" in named.out
    alone = command("crawlctl", *socket, "diff", running.url)
    assert (alone.code, "no copy before" in alone.err) == (2, True)
    same = command("crawlctl", *socket, "diff", running.url, "now", "now")
    assert "no visible text has changed" in same.out
    early = command("crawlctl", *socket, "page", running.url, "--at", "3 days ago")
    assert (early.code, "no copy of 3 days ago" in early.err) == (2, True)


@pytest.mark.parametrize("more", [(), ("--at", "now")])
def test_the_stored_body_goes_to_standard_output(command, running, more):
    assert versions(command, running)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "crawld.cli.crawlctl", "--socket", running.socket),
            *("page", running.url, "--body", *more),
        ],
        capture_output=True,
        check=True,
    )
    assert done.stdout.startswith(b"<!")
    assert done.stderr == b""
