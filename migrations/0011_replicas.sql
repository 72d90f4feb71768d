-- Replicated hosts. `replica_pair` holds pairs of hosts that may be replicas: the evidence of the
-- last verdict and the operator's decision. `replica` holds which host is a replica of which, and
-- its status. Existing pages are not changed; the replicas job judges them.
CREATE TABLE replica_pair (
    one_id INTEGER NOT NULL REFERENCES host,
    other_id INTEGER NOT NULL REFERENCES host,
    judged_at REAL NOT NULL,
    level TEXT NOT NULL CHECK (level IN ('certain', 'likely', 'unlikely')),
    -- by the classifier; NULL: it had too little to learn from
    probability REAL,
    -- JSON of core/replica/verdict.py Evidence, and of the measured features
    evidence TEXT NOT NULL,
    features TEXT NOT NULL,
    -- the operator's
    word TEXT CHECK (word IN ('confirmed', 'rejected')),
    PRIMARY KEY (one_id, other_id),
    CHECK (one_id < other_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX replica_pair_other ON replica_pair (other_id);

CREATE TABLE replica (
    host_id INTEGER PRIMARY KEY REFERENCES host,
    canonical_id INTEGER NOT NULL REFERENCES host,
    -- pruned: its pages are suspended where the canonical host has them; held: waits for the
    -- operator; withdrawn: it was pruned and the verdict no longer held
    status TEXT NOT NULL CHECK (status IN ('pruned', 'held', 'withdrawn')),
    reason TEXT NOT NULL,
    since REAL NOT NULL,
    -- when the sample of its pages was let go that is awaited, how many they are, and when the next
    -- is due
    sampled_at REAL NOT NULL DEFAULT 0,
    awaited INTEGER NOT NULL DEFAULT 0,
    look_at REAL NOT NULL DEFAULT 0,
    -- samples compared so far, those that agreed, and how far behind the canonical host they were
    sampled INTEGER NOT NULL DEFAULT 0,
    agreed INTEGER NOT NULL DEFAULT 0,
    lag_s REAL,
    CHECK (host_id <> canonical_id)
) STRICT;
CREATE INDEX replica_canonical ON replica (canonical_id);

ALTER TABLE host ADD COLUMN preferred INTEGER NOT NULL DEFAULT 0;

CREATE INDEX page_redirect ON page (host_id) WHERE redirect_url IS NOT NULL;
CREATE INDEX page_suspended ON page (host_id, page_id) WHERE state = 'suspended';
