-- How each page of a replica compares with its twin, the page at the same path of the canonical
-- host. A page is suspended only where it agreed itself, or was never visited and its section
-- agrees. Pages suspended before have no row: the next search compares them, or resumes them.
CREATE TABLE page_twin (
    page_id INTEGER PRIMARY KEY REFERENCES page ON DELETE CASCADE,
    -- that of the page
    host_id INTEGER NOT NULL REFERENCES host,
    twin_id INTEGER NOT NULL REFERENCES page ON DELETE CASCADE,
    -- repeated: equal, but its host shows the text on many paths; unknown: a later visit of the twin
    -- decides; deferred: never visited
    verdict TEXT NOT NULL
        CHECK (verdict IN ('agrees', 'differs', 'repeated', 'unknown', 'deferred')),
    -- digest of its text as compared; NULL: no text, such as a redirect
    digest BLOB,
    -- the visit of the page that was compared; 0: none
    visited_at REAL NOT NULL,
    compared_at REAL NOT NULL,
    -- comparisons in a row that agreed; how often it began to differ, and when it last did
    agreed INTEGER NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0,
    turned_at REAL NOT NULL DEFAULT 0,
    -- how far it was behind its twin; NULL: not measured
    lag_s REAL,
    -- when it was resumed to be compared again; NULL: it was not, or it was compared since
    released_at REAL,
    -- when a deferred page is visited; NULL: it is not deferred
    visit_at REAL
) STRICT;
CREATE INDEX page_twin_host ON page_twin (host_id);
CREATE INDEX page_twin_digest ON page_twin (host_id, digest) WHERE digest IS NOT NULL;
CREATE INDEX page_twin_unknown ON page_twin (host_id) WHERE verdict = 'unknown';
CREATE INDEX page_twin_visit ON page_twin (visit_at) WHERE visit_at IS NOT NULL;
CREATE INDEX page_twin_twin ON page_twin (twin_id);

-- The same table with the status `partly` and the columns from `twins` on.
ALTER TABLE replica RENAME TO replica_before;
CREATE TABLE replica (
    host_id INTEGER PRIMARY KEY REFERENCES host,
    canonical_id INTEGER NOT NULL REFERENCES host,
    -- pruned: it is a replica; partly: it has some pages of the canonical host; the pages of both
    -- that agree are suspended. held: waits for the operator; withdrawn: the verdict no longer held
    status TEXT NOT NULL CHECK (status IN ('pruned', 'partly', 'held', 'withdrawn')),
    reason TEXT NOT NULL,
    since REAL NOT NULL,
    -- when the pages were resumed that are awaited, how many they are, and when the next sample is
    -- due
    sampled_at REAL NOT NULL DEFAULT 0,
    awaited INTEGER NOT NULL DEFAULT 0,
    look_at REAL NOT NULL DEFAULT 0,
    -- samples compared so far, those that agreed, and how far behind the canonical host they were
    sampled INTEGER NOT NULL DEFAULT 0,
    agreed INTEGER NOT NULL DEFAULT 0,
    lag_s REAL,
    waits_for TEXT CHECK (waits_for IN ('operator', 'turn', 'config')),
    -- its pages whose twin has a copy; of these, pages that agree and that differ; whether the root
    -- agrees, NULL: not compared
    twins INTEGER NOT NULL DEFAULT 0,
    agreeing INTEGER NOT NULL DEFAULT 0,
    differing INTEGER NOT NULL DEFAULT 0,
    root INTEGER,
    CHECK (host_id <> canonical_id)
) STRICT;
INSERT INTO replica (host_id, canonical_id, status, reason, since, sampled_at, awaited, look_at,
                     sampled, agreed, lag_s, waits_for)
SELECT host_id, canonical_id, status, reason, since, sampled_at, awaited, look_at,
       sampled, agreed, lag_s, waits_for FROM replica_before;
DROP TABLE replica_before;
CREATE INDEX replica_canonical ON replica (canonical_id);

-- What is remembered of a section of a replica (core/replica/sections.py SectionState).
CREATE TABLE replica_section (
    host_id INTEGER NOT NULL REFERENCES replica ON DELETE CASCADE,
    prefix TEXT NOT NULL,
    deferring INTEGER NOT NULL,
    returned INTEGER NOT NULL,
    returned_at REAL NOT NULL,
    returns INTEGER NOT NULL,
    PRIMARY KEY (host_id, prefix)
) STRICT, WITHOUT ROWID;
