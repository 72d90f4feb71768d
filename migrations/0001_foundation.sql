-- The first schema: sites, hosts, origins, the frontier, visits and stored versions.
-- Times are Unix seconds (UTC); enumerations are the words of core/page.py.

-- Key-value settings of the file (canonical_rules_version, created_at ...).
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Sites as the operator configured them, with a key for their pages. The page counters of site and
-- host are updated in the transaction that changes a page; doctor compares them.
CREATE TABLE site (
    site_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- JSON of the [[site]] block; NULL: no longer configured, its pages are kept and not visited
    definition TEXT,
    source TEXT NOT NULL CHECK (source IN ('config', 'socket', 'command_line')),
    paused INTEGER NOT NULL DEFAULT 0,
    added_at REAL NOT NULL,
    pages_discovered INTEGER NOT NULL DEFAULT 0,
    pages_visited INTEGER NOT NULL DEFAULT 0,
    pages_excluded INTEGER NOT NULL DEFAULT 0,
    pages_gone INTEGER NOT NULL DEFAULT 0,
    pages_suspended INTEGER NOT NULL DEFAULT 0,
    page_count INTEGER NOT NULL GENERATED ALWAYS AS (
        pages_discovered + pages_visited + pages_excluded + pages_gone + pages_suspended
    ) VIRTUAL
) STRICT;

-- One row per host name: politeness applies to the host, for all schemes and ports.
CREATE TABLE host (
    host_id INTEGER PRIMARY KEY,
    host TEXT NOT NULL UNIQUE,
    paused INTEGER NOT NULL DEFAULT 0,
    added_at REAL NOT NULL,
    -- the address and the instant of the last request that reached the wire
    address TEXT,
    last_fetch_at REAL,
    -- back-off: multiplier steps taken, instant of the last trouble, closed until (Retry-After)
    backoff_level INTEGER NOT NULL DEFAULT 0,
    backoff_at REAL,
    closed_until REAL,
    visit_count INTEGER NOT NULL DEFAULT 0,
    change_count INTEGER NOT NULL DEFAULT 0,
    failure_count INTEGER NOT NULL DEFAULT 0,
    wire_bytes INTEGER NOT NULL DEFAULT 0,
    pages_discovered INTEGER NOT NULL DEFAULT 0,
    pages_visited INTEGER NOT NULL DEFAULT 0,
    pages_excluded INTEGER NOT NULL DEFAULT 0,
    pages_gone INTEGER NOT NULL DEFAULT 0,
    pages_suspended INTEGER NOT NULL DEFAULT 0,
    page_count INTEGER NOT NULL GENERATED ALWAYS AS (
        pages_discovered + pages_visited + pages_excluded + pages_gone + pages_suspended
    ) VIRTUAL
) STRICT;

-- One row per origin (scheme, host, port): robots.txt belongs to the origin (RFC 9309).
CREATE TABLE origin (
    origin_id INTEGER PRIMARY KEY,
    host_id INTEGER NOT NULL REFERENCES host,
    origin TEXT NOT NULL UNIQUE,
    -- open: no file (4xx); rules: robots_text holds; closed: 5xx or unreachable
    robots_verdict TEXT CHECK (robots_verdict IN ('open', 'rules', 'closed')),
    robots_status INTEGER,
    robots_fetched_at REAL,
    crawl_delay_s REAL,
    robots_text BLOB
) STRICT;
CREATE INDEX origin_host ON origin (host_id);

-- A known URL. url_hash: signed 64-bit hash of the canonical URL, computed by core/url.py.
CREATE TABLE page (
    page_id INTEGER PRIMARY KEY,
    site_id INTEGER NOT NULL REFERENCES site,
    host_id INTEGER NOT NULL REFERENCES host,
    origin_id INTEGER NOT NULL REFERENCES origin,
    url_hash INTEGER NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('discovered', 'visited', 'excluded', 'gone', 'suspended')),
    depth INTEGER NOT NULL,
    seed INTEGER NOT NULL DEFAULT 0,
    importance REAL NOT NULL DEFAULT 1.0,
    discovered_at REAL NOT NULL,
    referrer_id INTEGER,
    -- what the last visits said
    last_visit_at REAL,
    last_change_at REAL,
    retry_at REAL,
    last_outcome TEXT,
    last_failure TEXT,
    visit_count INTEGER NOT NULL DEFAULT 0,
    change_count INTEGER NOT NULL DEFAULT 0,
    failure_count INTEGER NOT NULL DEFAULT 0,
    gone_count INTEGER NOT NULL DEFAULT 0,
    gone_since REAL,
    -- the last good copy: what it was (digest) and where it is stored
    digest BLOB,
    version_id INTEGER,
    etag TEXT,
    last_modified TEXT,
    url TEXT NOT NULL,
    redirect_url TEXT,
    title TEXT
) STRICT;
-- Not UNIQUE on the hash alone: URLs of two hosts may have the same hash by chance.
CREATE UNIQUE INDEX page_url ON page (host_id, url_hash);
-- Unvisited pages, breadth-first per host and site.
CREATE INDEX page_discovered ON page (host_id, site_id, depth, page_id)
    WHERE state = 'discovered';
-- Pages to revisit, oldest visit first, loaded at the daemon's start. The index contains the
-- columns of its condition too; otherwise SQLite would read every page row to check it.
CREATE INDEX page_revisit ON page (host_id, site_id, last_visit_at, state, retry_at)
    WHERE state IN ('visited', 'gone') AND retry_at IS NULL;
-- Pages whose next visit has a fixed time; few at any time.
CREATE INDEX page_retry ON page (retry_at) WHERE retry_at IS NOT NULL;
-- Pages to check again when a robots.txt changes.
CREATE INDEX page_excluded ON page (origin_id) WHERE state = 'excluded';
CREATE INDEX page_seed ON page (site_id, host_id) WHERE seed = 1;

-- Equal bodies are stored once. digest: blake2b of the decoded body, 16 bytes.
CREATE TABLE body (
    body_id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    encoding TEXT NOT NULL CHECK (encoding IN ('identity', 'zstd')),
    size_bytes INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;

-- A stored copy of a page: time, status line, response headers, body. It does not depend on its
-- visit, so that old visits can be thinned out.
CREATE TABLE version (
    version_id INTEGER PRIMARY KEY,
    page_id INTEGER NOT NULL REFERENCES page,
    visited_at REAL NOT NULL,
    body_id INTEGER NOT NULL REFERENCES body,
    status INTEGER NOT NULL,
    http_version TEXT NOT NULL,
    -- as sent; HTTP/2 has none
    reason TEXT,
    content_type TEXT,
    charset TEXT,
    headers BLOB NOT NULL
) STRICT;
CREATE INDEX version_page ON version (page_id, visited_at);
CREATE INDEX version_body ON version (body_id);

-- One row per attempt. headers: compact block (see store/versions/headers.py), also of 304s; NULL
-- if there was no response, or if the version of this visit holds them.
CREATE TABLE visit (
    visit_id INTEGER PRIMARY KEY,
    page_id INTEGER NOT NULL REFERENCES page,
    visited_at REAL NOT NULL,
    outcome TEXT NOT NULL,
    failure TEXT,
    detail TEXT,
    status INTEGER,
    http_version TEXT,
    reason TEXT,
    address TEXT,
    duration_s REAL,
    wire_bytes INTEGER NOT NULL DEFAULT 0,
    body_bytes INTEGER NOT NULL DEFAULT 0,
    digest BLOB,
    version_id INTEGER,
    headers BLOB
) STRICT;
CREATE INDEX visit_page ON visit (page_id, visited_at);

-- URLs that were found and not admitted: a count per reason, and the last example.
CREATE TABLE refusal (
    host TEXT NOT NULL,
    reason TEXT NOT NULL,
    refused INTEGER NOT NULL,
    example TEXT NOT NULL,
    last_at REAL NOT NULL,
    PRIMARY KEY (host, reason)
) STRICT, WITHOUT ROWID;

-- Jobs of the daemon: their last runs and results.
CREATE TABLE job (
    name TEXT PRIMARY KEY,
    last_started_at REAL,
    last_finished_at REAL,
    result TEXT,
    detail TEXT
) STRICT, WITHOUT ROWID;
