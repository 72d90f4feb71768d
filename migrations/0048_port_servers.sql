-- Another port of a host name is another server: it may be a replica, or have one. Its number is
-- never one of a host; the server at the default ports of http and https has the number of its host.
CREATE TABLE port_server (
    server_id INTEGER PRIMARY KEY CHECK (server_id > 1073741824),
    host_id INTEGER NOT NULL REFERENCES host,
    -- with the port
    name TEXT NOT NULL UNIQUE,
    -- among the replicas of a group
    preferred INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX port_server_host ON port_server (host_id);

-- NULL: at the default port.
ALTER TABLE origin ADD COLUMN server_id INTEGER REFERENCES port_server;

INSERT INTO port_server (server_id, host_id, name)
SELECT 1073741824 + min(origin_id), host_id, substr(origin, instr(origin, '://') + 3) FROM origin
WHERE rtrim(origin, '0123456789') LIKE '%:' GROUP BY 2, 3;
UPDATE origin SET server_id = (
    SELECT server_id FROM port_server WHERE name = substr(origin, instr(origin, '://') + 3))
WHERE rtrim(origin, '0123456789') LIKE '%:';

-- Pages at other ports rested under the same port of another host. They return; the next search
-- compares them.
CREATE TABLE returned AS SELECT page_id, page.site_id, page.host_id, last_visit_at IS NULL AS is_new
FROM page_twin JOIN page USING (page_id) JOIN origin USING (origin_id)
WHERE state = 'suspended' AND server_id IS NOT NULL;
UPDATE page SET state = iif(last_visit_at IS NULL, 'discovered', 'visited')
WHERE page_id IN (SELECT page_id FROM returned);
UPDATE host SET
    pages_suspended = pages_suspended - (
        SELECT count(*) FROM returned WHERE returned.host_id = host.host_id),
    pages_discovered = pages_discovered + (
        SELECT count(*) FROM returned WHERE returned.host_id = host.host_id AND is_new),
    pages_visited = pages_visited + (
        SELECT count(*) FROM returned WHERE returned.host_id = host.host_id AND NOT is_new)
WHERE host_id IN (SELECT host_id FROM returned);
UPDATE site SET
    pages_suspended = pages_suspended - (
        SELECT count(*) FROM returned WHERE returned.site_id = site.site_id),
    pages_discovered = pages_discovered + (
        SELECT count(*) FROM returned WHERE returned.site_id = site.site_id AND is_new),
    pages_visited = pages_visited + (
        SELECT count(*) FROM returned WHERE returned.site_id = site.site_id AND NOT is_new)
WHERE site_id IN (SELECT site_id FROM returned);
DROP TABLE returned;

-- From here on `server_id`, `canonical_id`, `one_id` and `other_id` are numbers of servers. So far
-- they were those of hosts, which are those of their servers at the default ports.
ALTER TABLE replica_pair RENAME TO replica_pair_before;
CREATE TABLE replica_pair (
    one_id INTEGER NOT NULL,
    other_id INTEGER NOT NULL,
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
INSERT INTO replica_pair SELECT * FROM replica_pair_before;
DROP TABLE replica_pair_before;
CREATE INDEX replica_pair_other ON replica_pair (other_id);

ALTER TABLE replica_section RENAME TO replica_section_before;
ALTER TABLE replica RENAME TO replica_before;
CREATE TABLE replica (
    server_id INTEGER PRIMARY KEY,
    canonical_id INTEGER NOT NULL,
    -- pruned: it is a replica; partly: it has some pages of the canonical server; the pages of both
    -- that agree are suspended. held: waits for the operator; withdrawn: the verdict no longer held
    status TEXT NOT NULL CHECK (status IN ('pruned', 'partly', 'held', 'withdrawn')),
    reason TEXT NOT NULL,
    since REAL NOT NULL,
    -- when the pages were resumed that are awaited, how many they are, and when the next sample is
    -- due
    sampled_at REAL NOT NULL DEFAULT 0,
    awaited INTEGER NOT NULL DEFAULT 0,
    look_at REAL NOT NULL DEFAULT 0,
    -- samples compared so far, those that agreed, and how far behind the canonical server they were
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
    CHECK (server_id <> canonical_id)
) STRICT;
INSERT INTO replica SELECT * FROM replica_before;

CREATE TABLE replica_section (
    server_id INTEGER NOT NULL REFERENCES replica ON DELETE CASCADE,
    prefix TEXT NOT NULL,
    deferring INTEGER NOT NULL,
    returned INTEGER NOT NULL,
    returned_at REAL NOT NULL,
    returns INTEGER NOT NULL,
    PRIMARY KEY (server_id, prefix)
) STRICT, WITHOUT ROWID;
INSERT INTO replica_section SELECT * FROM replica_section_before;
DROP TABLE replica_section_before;
DROP TABLE replica_before;
CREATE INDEX replica_canonical ON replica (canonical_id);

ALTER TABLE page_twin RENAME TO page_twin_before;
CREATE TABLE page_twin (
    page_id INTEGER PRIMARY KEY REFERENCES page ON DELETE CASCADE,
    -- that of the page
    server_id INTEGER NOT NULL,
    twin_id INTEGER NOT NULL REFERENCES page ON DELETE CASCADE,
    -- repeated: equal, but its server shows the text on many paths; unknown: a later visit of the
    -- twin decides; deferred: never visited
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
INSERT INTO page_twin SELECT page_twin_before.* FROM page_twin_before
JOIN page USING (page_id) JOIN origin USING (origin_id) WHERE server_id IS NULL;
DROP TABLE page_twin_before;
CREATE INDEX page_twin_server ON page_twin (server_id);
CREATE INDEX page_twin_digest ON page_twin (server_id, digest) WHERE digest IS NOT NULL;
CREATE INDEX page_twin_unknown ON page_twin (server_id) WHERE verdict = 'unknown';
CREATE INDEX page_twin_visit ON page_twin (visit_at) WHERE visit_at IS NOT NULL;
CREATE INDEX page_twin_twin ON page_twin (twin_id);
