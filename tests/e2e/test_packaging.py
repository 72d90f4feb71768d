"""Manual pages and the systemd unit, checked by the programs that read them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.peer import require_peer

CONTRIB = Path(__file__).parents[2] / "contrib"


@pytest.mark.parametrize("page", sorted((CONTRIB / "man").iterdir()), ids=lambda page: page.name)
def test_manual_pages_have_no_lint_warnings(page):
    mandoc = require_peer("mandoc")
    linted = subprocess.run(
        [mandoc, "-T", "lint", "-W", "warning", page], capture_output=True, text=True, check=False
    )
    assert (linted.stdout, linted.returncode) == ("", 0)


def test_systemd_accepts_the_unit(tmp_path):
    systemd_analyze = require_peer("systemd")
    # The program of this checkout replaces the installed one.
    unit = (CONTRIB / "crawld.service").read_text()
    copy = tmp_path / "crawld.service"
    copy.write_text(unit.replace("/usr/bin/crawld ", f"{sys.executable} -m crawld "))
    verified = subprocess.run(
        [systemd_analyze, "verify", "--man=no", copy], capture_output=True, text=True, check=False
    )
    assert (verified.stderr, verified.returncode) == ("", 0)
