"""The queue of notifications: rules, the events that wait, and the message each rule delivers.

A rule has a position in the events and a set of events that it reports; both change in one
transaction, so that a kill loses none. Of these the oldest are sealed into a message, which is
tried until it is delivered or given up; its events stay the same at each try.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import apsw

from crawld.core.units import DAY_S

RETIRED_S: Final = 3 * DAY_S
"""How long the queue of a rule that the config no longer has is kept."""


class RuleState(NamedTuple):
    """The state of a rule; times are Unix seconds.

    Attributes:
        examined_id: the last event it has looked at.
        due_at: when the events that wait are sent; None: none wait.
        first_try_at: first try of the message under way; None: not tried, or there is none.
        tries: tries of the message under way.
        next_try_at: its next try; None: there is none.
        trouble: why the last try failed, or what was wrong with it; None: nothing.
        trouble_at: when that was.
        messages_delivered: number of messages.
        events_delivered: number of events in them.
        delivered_at: when the last was delivered; None: none yet.
        events_given_up: number of events that were given up.
        given_up_at: when that was last.
        waiting: events that wait, those of the message under way included.
        sealed: events of the message under way.
    """

    notify_rule_id: int
    name: str
    examined_id: int
    due_at: float | None
    first_try_at: float | None
    tries: int
    next_try_at: float | None
    trouble: str | None
    trouble_at: float | None
    messages_delivered: int
    events_delivered: int
    delivered_at: float | None
    events_given_up: int
    given_up_at: float | None
    waiting: int
    sealed: int


_COLUMNS: Final = ", ".join(RuleState._fields[:-2])
_STATE: Final = f"""
SELECT {_COLUMNS},
       (SELECT count(*) FROM notify_event AS each
        WHERE each.notify_rule_id = notify_rule.notify_rule_id),
       (SELECT count(*) FROM notify_event AS each
        WHERE each.notify_rule_id = notify_rule.notify_rule_id AND sealed)
FROM notify_rule WHERE retired_at IS NULL
"""


def adopt(connection: apsw.Connection, names: Sequence[str], newest_id: int, now: float) -> None:
    """Apply the names of the rules of the config.

    A new rule begins after the newest event. The queue of a rule that is gone waits for a while,
    in case that it comes back.
    """
    for name in names:
        connection.execute(
            "INSERT INTO notify_rule (name, examined_id) VALUES (?, ?)"
            " ON CONFLICT DO UPDATE SET retired_at = NULL",
            (name, newest_id),
        )
    known = connection.execute("SELECT name FROM notify_rule WHERE retired_at IS NULL").fetchall()
    gone = [(now, name) for (name,) in known if name not in names]
    connection.executemany("UPDATE notify_rule SET retired_at = ? WHERE name = ?", gone)
    connection.execute("DELETE FROM notify_rule WHERE retired_at < ?", (now - RETIRED_S,))


def list_rules(connection: apsw.Connection) -> list[RuleState]:
    """Return the state of every rule of the config, by name."""
    return [RuleState(*row) for row in connection.execute(f"{_STATE} ORDER BY name")]


def by_name(connection: apsw.Connection, name: str) -> RuleState | None:
    """Return the state of a rule, None if the config has no such rule."""
    row = connection.execute(f"{_STATE} AND name = ?", (name,)).fetchone()
    return RuleState(*row) if row else None


def add_events(
    connection: apsw.Connection,
    rule_id: int,
    event_ids: Iterable[int],
    *,
    examined_id: int,
    due_at: float,
) -> None:
    """Add events that a rule reports, and move it to the last event it has looked at.

    Args:
        due_at: when they are sent at the latest, if no others wait already.
    """
    found = [(rule_id, event_id) for event_id in event_ids]
    connection.executemany(
        "INSERT OR IGNORE INTO notify_event (notify_rule_id, event_id) VALUES (?, ?)", found
    )
    connection.execute(
        "UPDATE notify_rule SET examined_id = max(examined_id, ?), due_at = iif(?, "
        "coalesce(due_at, ?), due_at) WHERE notify_rule_id = ?",
        (examined_id, bool(found), due_at, rule_id),
    )


def seal(connection: apsw.Connection, rule_id: int, most: int, now: float) -> None:
    """Make a message of the oldest events that wait, due now; there must be none under way."""
    connection.execute(
        "UPDATE notify_event SET sealed = 1 WHERE notify_rule_id = ?1 AND event_id IN (SELECT"
        " event_id FROM notify_event WHERE notify_rule_id = ?1 ORDER BY event_id LIMIT ?2)",
        (rule_id, most),
    )
    connection.execute(
        "UPDATE notify_rule SET tries = 0, first_try_at = NULL, next_try_at = ?2, due_at = CASE"
        " WHEN EXISTS (SELECT 1 FROM notify_event WHERE notify_rule_id = ?1 AND NOT sealed)"
        " THEN due_at END WHERE notify_rule_id = ?1",
        (rule_id, now),
    )


def sealed_events(connection: apsw.Connection, rule_id: int) -> list[int]:
    """Return the events of the message under way, in their order."""
    rows = connection.execute(
        "SELECT event_id FROM notify_event WHERE notify_rule_id = ? AND sealed ORDER BY event_id",
        (rule_id,),
    )
    return [event_id for (event_id,) in rows]


def record_delivery(
    connection: apsw.Connection, rule_id: int, now: float, trouble: str | None = None
) -> None:
    """Record that the message under way was delivered, though perhaps not to all."""
    count = _remove_sealed(connection, rule_id)
    connection.execute(
        "UPDATE notify_rule SET messages_delivered = messages_delivered + 1,"
        " events_delivered = events_delivered + ?, delivered_at = ?, trouble = ?, trouble_at = ?"
        " WHERE notify_rule_id = ?",
        (count, now, trouble, None if trouble is None else now, rule_id),
    )


def record_failure(
    connection: apsw.Connection, rule_id: int, now: float, trouble: str, next_try_at: float
) -> None:
    """Record that a try of the message under way failed."""
    connection.execute(
        "UPDATE notify_rule SET tries = tries + 1, first_try_at = coalesce(first_try_at, ?),"
        " trouble = ?, trouble_at = ?, next_try_at = ? WHERE notify_rule_id = ?",
        (now, trouble, now, next_try_at, rule_id),
    )


def give_up(connection: apsw.Connection, rule_id: int, now: float, trouble: str) -> None:
    """Record that the message under way was given up."""
    count = _remove_sealed(connection, rule_id)
    connection.execute(
        "UPDATE notify_rule SET events_given_up = events_given_up + ?, given_up_at = ?,"
        " trouble = ?, trouble_at = ? WHERE notify_rule_id = ?",
        (count, now, trouble, now, rule_id),
    )


def drop_message(connection: apsw.Connection, rule_id: int) -> None:
    """Drop the message under way: none of its events is kept any more."""
    _remove_sealed(connection, rule_id)


def retry_now(connection: apsw.Connection, rule_id: int, now: float) -> None:
    """Make what waits due now: the next try of the message under way, or a digest."""
    connection.execute(
        "UPDATE notify_rule SET next_try_at = iif(next_try_at IS NULL, NULL, ?1),"
        " due_at = iif(due_at IS NULL, NULL, ?1) WHERE notify_rule_id = ?2",
        (now, rule_id),
    )


def _remove_sealed(connection: apsw.Connection, rule_id: int) -> int:
    """Remove the message under way and return how many events it had."""
    connection.execute("DELETE FROM notify_event WHERE notify_rule_id = ? AND sealed", (rule_id,))
    count = connection.changes()
    connection.execute(
        "UPDATE notify_rule SET tries = 0, first_try_at = NULL, next_try_at = NULL"
        " WHERE notify_rule_id = ?",
        (rule_id,),
    )
    return count
