"""The queue of notifications: positions, messages, failures, rules that come and go."""

import pytest

from crawld.store import notification
from crawld.store.notification import RETIRED_S
from tests.unit.store.rows import NOW


@pytest.fixture
def rule(connection):
    """Return the number of a rule that has looked at event 10."""
    notification.adopt(connection, ["team"], 10, NOW)
    return state(connection).notify_rule_id


def state(connection, name="team"):
    return notification.by_name(connection, name)


def add(connection, rule, *ids, due_at=NOW):
    last = max(ids, default=0)
    notification.add_events(connection, rule, ids, examined_id=last, due_at=due_at)


def test_a_new_rule_begins_after_the_newest_event(connection, rule):
    found = state(connection)
    assert (found.examined_id, found.waiting, found.due_at) == (10, 0, None)
    notification.adopt(connection, ["team", "b"], 99, NOW)
    assert state(connection).examined_id == 10
    assert [each.name for each in notification.list_rules(connection)] == ["b", "team"]


def test_events_wait_until_the_first_of_them_is_due(connection, rule):
    add(connection, rule, due_at=NOW)
    assert state(connection).due_at is None
    add(connection, rule, 11, 13, due_at=NOW + 5)
    add(connection, rule, 14, due_at=NOW + 9)
    found = state(connection)
    assert (found.examined_id, found.waiting, found.due_at) == (14, 3, NOW + 5)
    add(connection, rule, 14, due_at=NOW)  # looked at again after a kill
    assert state(connection).waiting == 3


def test_a_message_keeps_its_events_until_it_is_delivered(connection, rule):
    add(connection, rule, 11, 12, 13, due_at=NOW + 5)
    notification.seal(connection, rule, 2, NOW)
    assert notification.sealed_events(connection, rule) == [11, 12]
    found = state(connection)
    assert (found.sealed, found.next_try_at, found.due_at) == (2, NOW, NOW + 5)
    add(connection, rule, 14)
    notification.record_failure(connection, rule, NOW + 1, "status 500", NOW + 11)
    notification.record_failure(connection, rule, NOW + 12, "status 503", NOW + 30)
    found = state(connection)
    assert (found.tries, found.first_try_at, found.next_try_at) == (2, NOW + 1, NOW + 30)
    assert (found.trouble, found.trouble_at) == ("status 503", NOW + 12)
    assert notification.sealed_events(connection, rule) == [11, 12]
    notification.record_delivery(connection, rule, NOW + 31)
    found = state(connection)
    assert (found.tries, found.first_try_at, found.next_try_at) == (0, None, None)
    assert (found.trouble, found.trouble_at) == (None, None)
    assert (found.messages_delivered, found.events_delivered) == (1, 2)
    assert (found.waiting, found.sealed, found.delivered_at) == (2, 0, NOW + 31)
    notification.seal(connection, rule, 9, NOW)
    assert notification.sealed_events(connection, rule) == [13, 14]
    assert state(connection).due_at is None
    notification.record_delivery(connection, rule, NOW, "nobody@a.test was refused")
    assert state(connection).trouble == "nobody@a.test was refused"


def test_a_message_that_is_given_up_is_counted(connection, rule):
    add(connection, rule, 11, 12)
    notification.seal(connection, rule, 1, NOW)
    notification.give_up(connection, rule, NOW + 1, "status 500")
    found = state(connection)
    assert (found.events_given_up, found.given_up_at, found.waiting) == (1, NOW + 1, 1)
    assert (found.trouble, found.next_try_at, found.events_delivered) == ("status 500", None, 0)
    notification.seal(connection, rule, 1, NOW)
    notification.drop_message(connection, rule)
    found = state(connection)
    assert (found.events_given_up, found.waiting, found.next_try_at) == (1, 0, None)


def test_what_waits_is_made_due(connection, rule):
    notification.retry_now(connection, rule, NOW)
    assert (state(connection).next_try_at, state(connection).due_at) == (None, None)
    add(connection, rule, 11, due_at=NOW + 100)
    notification.retry_now(connection, rule, NOW)
    assert state(connection).due_at == NOW
    notification.seal(connection, rule, 1, NOW)
    notification.record_failure(connection, rule, NOW, "no", NOW + 100)
    notification.retry_now(connection, rule, NOW + 1)
    assert state(connection).next_try_at == NOW + 1


def test_the_queue_of_a_rule_that_is_gone_is_kept_for_a_while(connection, rule):
    add(connection, rule, 11)
    notification.adopt(connection, [], 20, NOW)
    assert state(connection) is None
    assert notification.list_rules(connection) == []
    notification.adopt(connection, [], 20, NOW + RETIRED_S)
    notification.adopt(connection, ["team"], 20, NOW + RETIRED_S)
    assert (state(connection).examined_id, state(connection).waiting) == (11, 1)
    notification.adopt(connection, [], 20, NOW)
    notification.adopt(connection, [], 20, NOW + RETIRED_S + 1.0)
    notification.adopt(connection, ["team"], 20, NOW)
    assert (state(connection).examined_id, state(connection).waiting) == (20, 0)
    assert connection.execute("SELECT count(*) FROM notify_event").get == 0


def test_rules_do_not_share_their_events(connection, rule):
    notification.adopt(connection, ["team", "b"], 10, NOW)
    other = state(connection, "b").notify_rule_id
    add(connection, rule, 11, 12)
    add(connection, other, 11)
    notification.seal(connection, rule, 9, NOW)
    notification.record_delivery(connection, rule, NOW)
    assert (state(connection, "b").waiting, state(connection, "b").events_delivered) == (1, 0)
