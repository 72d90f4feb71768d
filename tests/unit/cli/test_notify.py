"""The table of notifications, and what a test message tells."""

from crawld.cli.notify import notify_table, result_text
from crawld.daemon.api.schemas.notify import NotifyStatus, NotifyTest
from tests.unit.cli.conftest import shown

NOW = 1_780_000_000.0


def rule(**changed):
    values = {
        "name": "team", "receiver": "webhook on hooks.example.org", "when": "at once",
        "waiting": 0, "sealed": 0, "due_at": None, "tries": 0, "first_try_at": None,
        "next_try_at": None, "trouble": None, "trouble_at": None, "messages_delivered": 3,
        "events_delivered": 1_234, "delivered_at": NOW - 120.0, "events_given_up": 0,
        "given_up_at": None,
    }  # fmt: skip
    return NotifyStatus(**{**values, **changed})


def test_a_rule_that_works():
    text = shown(notify_table([rule()], NOW))
    for part in ("team", "webhook on hooks.example.org", "at once", "1,234", "2 min 00 s ago"):
        assert part in text


def test_a_rule_in_trouble():
    failing = rule(
        waiting=40, sealed=1, tries=7, next_try_at=NOW + 600.0, trouble="status 500\x1b[2J",
        events_given_up=12, due_at=NOW - 5.0,
    )  # fmt: skip
    text = shown(notify_table([failing], NOW))
    for part in ("40", "in 10 min", "status 500\N{REPLACEMENT CHARACTER}[2J (7x)", "12 given up"):
        assert part in text


def test_a_digest_that_waits():
    assert "in 2 h 00 min" in shown(notify_table([rule(waiting=2, due_at=NOW + 7_200.0)], NOW))
    assert "now" in shown(notify_table([rule(waiting=2, due_at=NOW - 1.0)], NOW))


def test_no_rules():
    assert "add [[notify]] to the config" in shown(notify_table([], NOW))


def test_a_test_message():
    assert result_text(NotifyTest(name="a", delivered=True, trouble="")) == "a: delivered"
    partly = NotifyTest(name="a", delivered=True, trouble="b@c.d was refused")
    assert result_text(partly) == "a: delivered, but b@c.d was refused"
    failed = NotifyTest(name="a", delivered=False, trouble="status 500")
    assert result_text(failed) == "a: not delivered: status 500"
