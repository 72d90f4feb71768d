-- Rules of notification by name: how far each has looked at the events, what became of its messages,
-- and the message that it tries to deliver.
CREATE TABLE notify_rule (
    notify_rule_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- the last event it has looked at
    examined_id INTEGER NOT NULL,
    -- when the events that wait are sent; NULL: none wait
    due_at REAL,
    -- the message under way: its first try, how many failed, and when the next is; NULL: none
    first_try_at REAL,
    tries INTEGER NOT NULL DEFAULT 0,
    next_try_at REAL,
    -- why the last try failed; NULL: it did not
    trouble TEXT,
    trouble_at REAL,
    messages_delivered INTEGER NOT NULL DEFAULT 0,
    events_delivered INTEGER NOT NULL DEFAULT 0,
    delivered_at REAL,
    events_given_up INTEGER NOT NULL DEFAULT 0,
    given_up_at REAL,
    -- since when the config has no such rule; NULL: it has one
    retired_at REAL
) STRICT;
-- Events that a rule reports and that nobody got yet.
CREATE TABLE notify_event (
    notify_rule_id INTEGER NOT NULL REFERENCES notify_rule ON DELETE CASCADE,
    event_id INTEGER NOT NULL,
    -- whether it belongs to the message under way
    sealed INTEGER NOT NULL DEFAULT 0 CHECK (sealed IN (0, 1)),
    PRIMARY KEY (notify_rule_id, event_id)
) STRICT, WITHOUT ROWID;
