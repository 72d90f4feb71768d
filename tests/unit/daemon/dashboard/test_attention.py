"""What needs the operator's attention, as the dashboard tells it."""

from crawld.daemon.dashboard.attention import Surroundings, concerns
from crawld.daemon.dashboard.hosts_summary import HostsSummary
from tests.unit.cli.test_tables import status


def test_messages_that_wait_are_told_with_what_sends_them():
    told = status(notify_troubles={"team": "status 503"}, quarantined=1)
    found = concerns(told, Surroundings(HostsSummary()))
    assert [each.remedy for each in found] == ["crawlctl quarantine", "crawlctl notify retry team"]
    assert found[1].text == "Messages of the rule team wait: status 503."
