"""Hostile servers in simulated time: what the daemon makes of them, and that harm would be seen.

The whole catalogue is run by `make torture`; here are all cases of the families that need few
resources, and every 16th of the others.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crawld.cli.lab_hostile import catalogue_text
from crawld.simweb.hostile.case import HostileCase, build_response, failed, html
from crawld.simweb.hostile.catalogue import CASES, FAMILIES
from crawld.universe.hostile import run
from crawld.universe.hostile.network import is_private

STRIDE = 1 if os.environ.get("CRAWLD_HOSTILE") == "all" else 16
CHEAP = ("fence", "framing", "pace", "everywhere")
APART = ("sizes", "amplified")
MAX_MB = 600


@pytest.mark.parametrize(
    ("families", "every"),
    [(CHEAP, 1), (tuple(sorted(set(FAMILIES) - {*CHEAP, *APART})), STRIDE)],
    ids=["cheap", "others"],
)
def test_no_case_does_harm(families, every, tmp_path):
    command = [sys.executable, "-m", "crawld.cli.main", "lab", "hostile", "--every", str(every)]
    command += [word for family in families for word in ("--family", family)]
    result = tmp_path / "result.json"
    ended = subprocess.run(
        [*command, "--json", str(result)], capture_output=True, text=True, check=False
    )
    found = json.loads(result.read_text())
    assert found["faults"] == [], ended.stdout
    assert ended.returncode == 0
    assert len(found["cases"]) >= sum(len(FAMILIES[family]) for family in families) // every
    assert found["peak_rss_mb"] < MAX_MB


def test_the_catalogue_is_large_enough():
    assert len(CASES) == sum(map(len, FAMILIES.values()))  # no name is used twice
    assert sum(len(FAMILIES[family]) for family in CHEAP) > 250


def test_the_page_of_the_catalogue_is_what_the_command_prints():
    page = Path(__file__).parents[2] / "docs" / "hostile-servers.md"
    assert page.read_text() == catalogue_text() + "\n"  # crawld lab hostile --list


def _run(tmp_path, *cases):
    return run.run_hostile(cases, tmp_path)


def _case(**more):
    page = html("<p>harmless")
    return HostileCase(
        name="harmless",
        family="none",
        respond=lambda _: lambda request, _: build_response(request, 200, page),
        **more,
    )


def test_each_batch_of_cases_trusts_its_own_authority(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "BATCH", 1)
    result = _run(tmp_path, CASES["tls-healthy"], CASES["h2-healthy"])
    assert result.faults() == []


def test_a_run_is_the_same_whenever_it_is_repeated(tmp_path):
    cases = [CASES["pace-body"], CASES["pace-redirects"], CASES["rebinding-in-turn"]]
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        result = _run(tmp_path / name, *cases).as_json()
        found.append({key: value for key, value in result.items() if key not in _OF_THE_MACHINE})
    assert found[0] == found[1]
    assert found[0]["faults"] == []


_OF_THE_MACHINE = {"cpu_s", "peak_rss_mb"}


def test_a_wrong_outcome_is_a_fault(tmp_path):
    found = _run(tmp_path, _case(outcomes=failed("timeout"))).faults()
    assert found == ["harmless: outcome changed, unchanged"]


def test_a_private_address_that_is_dialed_is_a_fault(tmp_path, monkeypatch):
    monkeypatch.setattr("crawld.net.wire.refusal", lambda address, allow_private: None)
    found = _run(tmp_path, CASES["fence-loopback"], CASES["fence-v6-mapped"])
    assert set(found.crossed) == {"127.0.0.1 port 80", "::ffff:7f00:1 port 80"}


def test_an_exchange_beyond_its_total_time_is_a_fault():
    assert run.CaseResult(_case(), ["changed"], longest_s=run.TOTAL_S + 1.1).faults()
    assert not run.CaseResult(_case(), ["changed"], longest_s=run.TOTAL_S + 0.9).faults()


def test_an_event_stream_is_read_at_a_limited_rate(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "LEAST_S", 20.0)
    found = _run(tmp_path, CASES["events-fields"], CASES["events-bomb"])
    assert found.faults() == []
    # Two streams of at most 1 MiB each second; what is coded counts as what it decodes to.
    assert found.received_bytes <= 1.1 * 2**20 * found.simulated_s


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("45.66.1.1", False),
        ("2a00:1450::1", False),
        ("127.0.0.1", True),
        ("::ffff:10.0.0.1", True),
        ("64:ff9b::7f00:1", True),
        ("64:ff9b::808:808", False),
        ("2002:c0a8:1::", True),
        ("fec0::1", True),
        ("2001::1", True),
        ("239.1.1.1", True),
    ],
)
def test_private_addresses_by_the_rules_of_the_auditor(address, private):
    assert is_private(address) is private
