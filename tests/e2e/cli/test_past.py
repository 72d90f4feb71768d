"""How `crawlctl` shows the past of a mirror that runs."""

import contextlib
import json
import subprocess
import sys

import pytest


def versions(command, standing):
    """The copies of the mirror's seed, as soon as its first visit is recorded."""
    asked = ("crawlctl", "--json", "--socket", standing.socket, "history", standing.url)
    for _ in range(1_200):
        if found := json.loads(command(*asked).out)["versions"]:
            return found
        with contextlib.suppress(subprocess.TimeoutExpired):
            standing.process.wait(0.05)
    raise AssertionError("the seed was not visited")


def test_the_past_of_a_standing_mirror(command, standing):
    socket = ("--socket", standing.socket)
    [version] = versions(command, standing)
    named = command("crawlctl", *socket, "page", standing.url, "--at", version["version_id"])
    assert "not yet" in named.out
    alone = command("crawlctl", *socket, "diff", standing.url)
    assert (alone.code, "no copy before" in alone.err) == (2, True)
    same = command("crawlctl", *socket, "diff", standing.url, "now", "now")
    assert "nothing that a reader sees" in same.out
    early = command("crawlctl", *socket, "page", standing.url, "--at", "3 days ago")
    assert (early.code, "no copy of 3 days ago" in early.err) == (2, True)


@pytest.mark.parametrize("more", [(), ("--at", "now")])
def test_the_stored_bytes_go_to_standard_output(command, standing, more):
    assert versions(command, standing)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "crawld.cli.crawlctl", "--socket", standing.socket),
            *("page", standing.url, "--body", *more),
        ],
        capture_output=True,
        check=True,
    )
    assert done.stdout.startswith(b"<!")
    assert done.stderr == b""
