CREATE INDEX body_base ON body (base_id) WHERE base_id IS NOT NULL;

CREATE INDEX dust_page_origin ON dust_page (origin_id, verdict);

CREATE INDEX dust_page_rule ON dust_page (dust_rule_id) WHERE dust_rule_id IS NOT NULL;

CREATE INDEX event_kind ON event (kind);

CREATE INDEX event_page ON event (page_id);

CREATE INDEX event_site ON event (site_id, kind);

CREATE INDEX origin_host ON origin (host_id);

CREATE INDEX origin_server ON origin (origin_id, server_id) WHERE server_id IS NOT NULL;

CREATE INDEX packed_block_order
    ON packed_block (host_id, site_id, depth, packed_block_id, pages);

CREATE INDEX page_discovered ON page (requisite, host_id, site_id, depth, page_id)
    WHERE state = 'discovered';

CREATE INDEX page_excluded ON page (origin_id) WHERE state = 'excluded';

CREATE INDEX page_held ON page (site_id, host_id)
    WHERE state = 'visited' AND version_id IS NOT NULL AND requisite = 0;

CREATE INDEX page_left ON page (site_id) WHERE left_at IS NOT NULL;

CREATE INDEX page_name_page ON page_name (page_id);

CREATE INDEX page_redirect ON page (host_id) WHERE redirect_url IS NOT NULL;

CREATE INDEX page_retry ON page (retry_at) WHERE retry_at IS NOT NULL;

CREATE INDEX page_revisit ON page (host_id, site_id, last_visit_at, state, retry_at)
    WHERE state IN ('visited', 'gone') AND retry_at IS NULL;

CREATE INDEX page_seed ON page (site_id, host_id) WHERE seed = 1;

CREATE INDEX page_share_page ON page_share (page_id);

CREATE INDEX page_suspended ON page (host_id, page_id) WHERE state = 'suspended';

CREATE INDEX page_title
    ON page (site_id, substr(ifnull(nullif(title, ''), url), 1, 80) COLLATE NOCASE)
    WHERE version_id IS NOT NULL AND requisite = 0;

CREATE INDEX page_twin_digest ON page_twin (server_id, digest) WHERE digest IS NOT NULL;

CREATE INDEX page_twin_server ON page_twin (server_id);

CREATE INDEX page_twin_twin ON page_twin (twin_id);

CREATE INDEX page_twin_unknown ON page_twin (server_id) WHERE verdict = 'unknown';

CREATE INDEX page_twin_visit ON page_twin (visit_at) WHERE visit_at IS NOT NULL;

CREATE INDEX page_vanished ON page (host_id, gone_since) WHERE gone_count > 0;

CREATE INDEX pin_version ON pin (version_id);

CREATE INDEX port_server_host ON port_server (host_id);

CREATE INDEX quarantine_page ON quarantine (page_id);

CREATE INDEX replica_canonical ON replica (canonical_id);

CREATE INDEX replica_pair_other ON replica_pair (other_id);

CREATE INDEX seen_chunk_repository ON seen_chunk (repository, first_key, urls);

CREATE INDEX seen_pending_repository ON seen_pending (repository, seen_pending_id, urls);

CREATE INDEX shared_block_order ON shared_block (run, first_host);

CREATE INDEX shared_run_repository ON shared_run (repository, run, pages);

CREATE INDEX sitemap_next ON sitemap (hint_source_id, next_at);

CREATE INDEX untold_page ON untold (page_id);

CREATE INDEX version_body ON version (body_id);

CREATE INDEX version_page ON version (page_id, visited_at);

CREATE INDEX visit_page ON visit (page_id, visited_at);

CREATE INDEX wiki_event_wiki ON wiki_event (wiki_id, wiki_event_id);

CREATE INDEX wiki_page_number ON wiki_page (wiki_id, wiki_page_number)
    WHERE wiki_page_number IS NOT NULL;

CREATE INDEX wiki_page_order ON wiki_page (wiki_id, page_id);

CREATE INDEX wiki_page_state ON wiki_page (wiki_id, state, tries, page_id);

CREATE INDEX wiki_title_title ON wiki_title (site_id, wiki_id, title);

CREATE TABLE "body" (
    body_id INTEGER PRIMARY KEY,
    -- blake2b of the decoded body, 16 bytes; equal bodies are stored once
    digest BLOB NOT NULL UNIQUE,
    encoding TEXT NOT NULL CHECK (encoding IN ('identity', 'zstd')),
    size_bytes INTEGER NOT NULL,
    -- the body whose decoded bytes are the dictionary of the data; NULL: the data stand alone
    base_id INTEGER REFERENCES body CHECK (base_id IS NULL OR encoding = 'zstd'),
    data BLOB NOT NULL
) STRICT;

CREATE TABLE "hint_source" (
    hint_source_id INTEGER PRIMARY KEY,
    site_id INTEGER REFERENCES site,
    wiki_id INTEGER REFERENCES wiki,
    -- the host whose pages it reports on
    host_id INTEGER NOT NULL REFERENCES host,
    -- recent_changes, probe, sitemap ...; and what is asked
    kind TEXT NOT NULL,
    url TEXT NOT NULL,
    found_at REAL NOT NULL,
    -- where the next poll continues; told_until: changes up to then have been reported
    cursor TEXT,
    told_until REAL,
    last_poll_at REAL,
    next_poll_at REAL,
    poll_count INTEGER NOT NULL DEFAULT 0,
    request_count INTEGER NOT NULL DEFAULT 0,
    -- reported changes of known pages; those that visits confirmed; those that they did not; and
    -- the changes that visits found and the source never reported
    hint_count INTEGER NOT NULL DEFAULT 0,
    real_count INTEGER NOT NULL DEFAULT 0,
    false_count INTEGER NOT NULL DEFAULT 0,
    missed_count INTEGER NOT NULL DEFAULT 0,
    -- from a change to its hint, summed over hints whose time the source knew
    lag_s REAL NOT NULL DEFAULT 0,
    lag_count INTEGER NOT NULL DEFAULT 0,
    -- evidence of its reliability (core/change/reliability.py), as JSON
    evidence TEXT,
    -- the last failure, failures in a row, and when it may be asked again
    trouble TEXT,
    trouble_detail TEXT,
    trouble_count INTEGER NOT NULL DEFAULT 0,
    closed_until REAL, explained_count INTEGER NOT NULL DEFAULT 0,
    CHECK ((site_id IS NULL) <> (wiki_id IS NULL))
) STRICT;

CREATE TABLE "wiki" (
    wiki_id INTEGER PRIMARY KEY,
    origin_id INTEGER NOT NULL UNIQUE REFERENCES origin,
    -- when pages of the origin were last checked; api_url NULL: they were no wiki's
    looked_at REAL NOT NULL,
    api_url TEXT,
    -- the wiki's own description (JSON), and when it was read
    facts TEXT,
    facts_at REAL,
    request_count INTEGER NOT NULL DEFAULT 0,
    change_count INTEGER NOT NULL DEFAULT 0,
    -- the last failure, failures in a row, and when the API may be asked again
    trouble TEXT,
    trouble_detail TEXT,
    trouble_count INTEGER NOT NULL DEFAULT 0,
    closed_until REAL
, fed_since REAL, fed_until REAL) STRICT;

CREATE TABLE "wiki_member" (
    site_id INTEGER NOT NULL REFERENCES site,
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    title TEXT NOT NULL,
    reason TEXT NOT NULL
        CHECK (reason IN ('title', 'category', 'prefix', 'redirect', 'move', 'former')),
    -- the category, the prefix, the redirect, or the former or new title; empty for a listed title
    via TEXT NOT NULL,
    -- when it began to belong, and when the wiki last said so
    since REAL NOT NULL,
    named_at REAL NOT NULL,
    PRIMARY KEY (site_id, wiki_id, title, reason, via)
) STRICT, WITHOUT ROWID;

CREATE TABLE 'page_text_config'(k PRIMARY KEY, v) WITHOUT ROWID;

CREATE TABLE 'page_text_data'(id INTEGER PRIMARY KEY, block BLOB);

CREATE TABLE 'page_text_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);

CREATE TABLE 'page_text_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

CREATE TABLE absence (
    origin_id INTEGER PRIMARY KEY REFERENCES origin,
    probed_at REAL NOT NULL,
    -- of the answer; NULL: there was none
    status INTEGER,
    -- of the text of a 200, and where a redirect led to
    sketch BLOB,
    redirect_url TEXT
) STRICT;

CREATE TABLE audit (
    site_id INTEGER NOT NULL REFERENCES site,
    host_id INTEGER NOT NULL REFERENCES host,
    day INTEGER NOT NULL,
    fresh INTEGER NOT NULL DEFAULT 0,
    stale INTEGER NOT NULL DEFAULT 0,
    unknown INTEGER NOT NULL DEFAULT 0,
    expected REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (site_id, host_id, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_hour (
    site_id INTEGER NOT NULL REFERENCES site,
    hour INTEGER NOT NULL,
    fresh INTEGER NOT NULL DEFAULT 0,
    stale INTEGER NOT NULL DEFAULT 0,
    unknown INTEGER NOT NULL DEFAULT 0,
    expected REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (site_id, hour)
) STRICT, WITHOUT ROWID;

CREATE TABLE change (
    page_id INTEGER NOT NULL REFERENCES page,
    changed_at REAL NOT NULL,
    revision_id INTEGER NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('revision', 'log')),
    kind TEXT CHECK (kind IN ('null', 'revert', 'deletion', 'restoration', 'move')),
    size_bytes INTEGER,
    digest INTEGER,
    PRIMARY KEY (page_id, changed_at, revision_id, source)
) STRICT, WITHOUT ROWID;

CREATE TABLE document_text (
    body_id INTEGER PRIMARY KEY REFERENCES body ON DELETE CASCADE,
    -- `identity` or `zstd`, of UTF-8
    encoding TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE TABLE dust_origin (
    origin_id INTEGER PRIMARY KEY REFERENCES origin,
    -- first segments of its paths that are sections of their own, as JSON
    sections TEXT NOT NULL,
    -- its pages when its URLs were last read, and when that was
    pages INTEGER NOT NULL,
    read_at REAL NOT NULL,
    -- visits asked for that the crawl would not have made
    asked INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE dust_page (
    page_id INTEGER PRIMARY KEY REFERENCES page ON DELETE CASCADE,
    origin_id INTEGER NOT NULL REFERENCES origin,
    -- path and query of the URL that stands for it
    canonical TEXT NOT NULL,
    -- hidden: by rules, not compared; asked: both pages are visited to be compared; nothing: the
    -- texts were too short or too frequent to prove anything
    verdict TEXT NOT NULL CHECK (verdict IN ('hidden', 'asked', 'equal', 'differs', 'nothing')),
    at REAL NOT NULL,
    -- the trial for which it was compared, and the value that its rule removes; NULL: a sample
    dust_rule_id INTEGER REFERENCES dust_rule ON DELETE SET NULL,
    value TEXT NOT NULL DEFAULT '',
    -- digest of the main text of both; NULL: not equal
    digest BLOB,
    -- comparisons that differed because of the time between the two visits
    tries INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE dust_rule (
    dust_rule_id INTEGER PRIMARY KEY,
    origin_id INTEGER NOT NULL REFERENCES origin,
    form TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    section TEXT NOT NULL,
    -- trial: pages are compared; refused: they differed; withdrawn: it held, then pages differed
    status TEXT NOT NULL CHECK (status IN ('trial', 'holds', 'refused', 'withdrawn')),
    -- of the operator; it counts before the status
    word TEXT CHECK (word IN ('confirmed', 'revoked')),
    since REAL NOT NULL,
    -- pairs of pages compared, in the trial and after it, and what they say (core/dust/trial.py)
    equal INTEGER NOT NULL DEFAULT 0,
    differing INTEGER NOT NULL DEFAULT 0,
    score REAL NOT NULL DEFAULT 0,
    -- when pages that it hides are visited again
    look_at REAL NOT NULL DEFAULT 0,
    UNIQUE (origin_id, form, name, value, section)
) STRICT;

CREATE TABLE event (
    -- never used again: clients know an event by it
    event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    site_id INTEGER NOT NULL REFERENCES site,
    page_id INTEGER NOT NULL REFERENCES page ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('new', 'changed', 'moved', 'gone', 'back')),
    at REAL NOT NULL,
    -- the copies after and before; not referenced, because retention may delete them
    version_id INTEGER,
    before_id INTEGER,
    -- size of the change, a share of the text
    difference REAL,
    -- where it moved to
    target_url TEXT
) STRICT;

CREATE TABLE fan_out (
    hint_source_id INTEGER NOT NULL REFERENCES hint_source ON DELETE CASCADE,
    cause TEXT NOT NULL,
    pages INTEGER NOT NULL,
    listed_at REAL NOT NULL,
    PRIMARY KEY (hint_source_id, cause)
) STRICT, WITHOUT ROWID;

CREATE TABLE hint (
    page_id INTEGER NOT NULL REFERENCES page ON DELETE CASCADE,
    hint_source_id INTEGER NOT NULL REFERENCES hint_source ON DELETE CASCADE,
    first_at REAL NOT NULL,
    last_at REAL NOT NULL,
    heard_at REAL NOT NULL,
    told INTEGER NOT NULL,
    PRIMARY KEY (page_id, hint_source_id)
) STRICT, WITHOUT ROWID;

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
, clock_skew_s REAL, prior_shape REAL, prior_exposure_s REAL, price REAL, preferred INTEGER NOT NULL DEFAULT 0, vanishing_since REAL, certificate TEXT) STRICT;

CREATE TABLE job (
    name TEXT PRIMARY KEY,
    last_started_at REAL,
    last_finished_at REAL,
    result TEXT,
    detail TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE mirror (mirror_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE TABLE model (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    record BLOB NOT NULL
) STRICT;

CREATE TABLE notify_event (
    notify_rule_id INTEGER NOT NULL REFERENCES notify_rule ON DELETE CASCADE,
    event_id INTEGER NOT NULL,
    -- whether it belongs to the message under way
    sealed INTEGER NOT NULL DEFAULT 0 CHECK (sealed IN (0, 1)),
    PRIMARY KEY (notify_rule_id, event_id)
) STRICT, WITHOUT ROWID;

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
, validators BLOB, server_id INTEGER REFERENCES port_server) STRICT;

CREATE TABLE packed_block (
    packed_block_id INTEGER PRIMARY KEY,
    host_id INTEGER NOT NULL REFERENCES host,
    site_id INTEGER NOT NULL REFERENCES site,
    depth INTEGER NOT NULL,
    -- entries, void ones included
    pages INTEGER NOT NULL,
    -- zstd frame: times of discovery and referrers of 8 bytes each, then lengths and texts
    entries BLOB NOT NULL
) STRICT;

CREATE TABLE packed_key (
    host_id INTEGER NOT NULL,
    -- the key that its row will have
    url_hash INTEGER NOT NULL,
    site_id INTEGER NOT NULL,
    depth INTEGER NOT NULL, url_check INTEGER,
    PRIMARY KEY (host_id, url_hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE packed_void (
    host_id INTEGER NOT NULL,
    site_id INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    PRIMARY KEY (host_id, site_id)
) STRICT, WITHOUT ROWID;

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
, cleaned_digest BLOB, sketch BLOB, change_streak INTEGER NOT NULL DEFAULT 0, requisite INTEGER NOT NULL DEFAULT 0, left_at REAL, absent TEXT CHECK (absent IN ('moved', 'gone')), form BLOB) STRICT;

CREATE TABLE page_name (
    host_id INTEGER NOT NULL REFERENCES host,
    url_hash INTEGER NOT NULL,
    url TEXT NOT NULL,
    page_id INTEGER NOT NULL REFERENCES page ON DELETE CASCADE,
    PRIMARY KEY (host_id, url_hash, url)
) STRICT, WITHOUT ROWID;

CREATE TABLE page_share (
    -- the other site
    site_id INTEGER NOT NULL REFERENCES site,
    page_id INTEGER NOT NULL REFERENCES page ON DELETE CASCADE,
    PRIMARY KEY (site_id, page_id)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE partial_body (
    page_id INTEGER PRIMARY KEY REFERENCES page ON DELETE CASCADE,
    received_at REAL NOT NULL,
    -- strong ETag or Last-Modified, as sent
    validator TEXT NOT NULL,
    total_bytes INTEGER NOT NULL,
    body BLOB NOT NULL
, form BLOB) STRICT;

CREATE TABLE pin (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    version_id INTEGER NOT NULL REFERENCES version,
    pinned_at REAL NOT NULL
) STRICT;

CREATE TABLE port_server (
    server_id INTEGER PRIMARY KEY CHECK (server_id > 1073741824),
    host_id INTEGER NOT NULL REFERENCES host,
    -- with the port
    name TEXT NOT NULL UNIQUE,
    -- among the replicas of a group
    preferred INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE probe (
    page_id INTEGER PRIMARY KEY REFERENCES page ON DELETE CASCADE,
    -- NULL: it showed no page there
    revision_id INTEGER,
    touched_at REAL,
    probed_at REAL NOT NULL
) STRICT;

CREATE TABLE quarantine (
    url TEXT PRIMARY KEY,
    -- NULL: no page, such as a robots.txt, a sitemap or the answer of an API
    page_id INTEGER REFERENCES page,
    -- what was under way
    step TEXT NOT NULL CHECK (step IN ('decoding', 'analysis')),
    -- 0: a suspect, analysed once more; 1: not analysed
    held INTEGER NOT NULL CHECK (held IN (0, 1)),
    analyser_version INTEGER NOT NULL,
    found_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE quiet_visit (
    site_id INTEGER PRIMARY KEY REFERENCES site,
    visits REAL NOT NULL DEFAULT 0,
    stale REAL NOT NULL DEFAULT 0,
    expected REAL NOT NULL DEFAULT 0,
    exposure_s REAL NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE refusal (
    host TEXT NOT NULL,
    reason TEXT NOT NULL,
    refused INTEGER NOT NULL,
    example TEXT NOT NULL,
    last_at REAL NOT NULL,
    PRIMARY KEY (host, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE removal (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    kind TEXT NOT NULL CHECK (kind IN ('deletion', 'move')),
    -- the earliest and the latest time of the report, by our clock
    first_at REAL NOT NULL,
    last_at REAL NOT NULL,
    -- where it was moved to
    target_url TEXT
) STRICT;

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

CREATE TABLE replica_alternate (
    server_id INTEGER NOT NULL REFERENCES replica ON DELETE CASCADE,
    alternate_id INTEGER NOT NULL,
    PRIMARY KEY (server_id, alternate_id)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE replica_section (
    server_id INTEGER NOT NULL REFERENCES replica ON DELETE CASCADE,
    prefix TEXT NOT NULL,
    deferring INTEGER NOT NULL,
    returned INTEGER NOT NULL,
    returned_at REAL NOT NULL,
    returns INTEGER NOT NULL,
    PRIMARY KEY (server_id, prefix)
) STRICT, WITHOUT ROWID;

CREATE TABLE request_profile (
    site_id INTEGER NOT NULL REFERENCES site ON DELETE CASCADE,
    host_id INTEGER NOT NULL REFERENCES host ON DELETE CASCADE,
    -- JSON by profile name
    learnt TEXT NOT NULL,
    PRIMARY KEY (site_id, host_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE requisite_use (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    requisites BLOB NOT NULL
) STRICT;

CREATE TABLE scale (
    site_id INTEGER PRIMARY KEY REFERENCES site,
    fitted_at REAL NOT NULL,
    model TEXT NOT NULL
) STRICT;

CREATE TABLE section (
    host_id INTEGER NOT NULL REFERENCES host,
    name TEXT NOT NULL,
    prior_shape REAL NOT NULL,
    prior_exposure_s REAL NOT NULL,
    PRIMARY KEY (host_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE seen_chunk (
    seen_chunk_id INTEGER PRIMARY KEY,
    repository INTEGER NOT NULL CHECK (repository BETWEEN 0 AND 63),
    -- the least key that belongs here, less 2^63
    first_key INTEGER NOT NULL,
    urls INTEGER NOT NULL,
    -- keys of 8 bytes, then references of 4 bytes
    entries BLOB NOT NULL
) STRICT;

CREATE TABLE seen_found (
    seen_found_id INTEGER PRIMARY KEY,
    urls INTEGER NOT NULL,
    -- zstd frame: sites and depths of 2 bytes, whether each was told to be new in 1, hosts, times of
    -- discovery and referrers of 8 each, then lengths and texts
    links BLOB NOT NULL
) STRICT;

CREATE TABLE seen_pending (
    seen_pending_id INTEGER PRIMARY KEY,
    repository INTEGER NOT NULL CHECK (repository BETWEEN 0 AND 63),
    urls INTEGER NOT NULL,
    -- keys of 8 bytes, then checks of 4 bytes
    entries BLOB NOT NULL,
    -- as above
    links BLOB NOT NULL
) STRICT;

CREATE TABLE seen_seed (seed INTEGER NOT NULL) STRICT;

CREATE TABLE shared_block (
    -- above those of packed_block
    shared_block_id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES shared_run,
    -- of the hosts of a run, this and the next until the next block begins
    first_host INTEGER NOT NULL,
    -- zstd frame: steps of hosts, sites, depths and numbers of entries
    queues BLOB NOT NULL,
    -- as those of packed_block
    entries BLOB NOT NULL
) STRICT;

CREATE TABLE shared_drawn (
    shared_block_id INTEGER NOT NULL REFERENCES shared_block,
    host_id INTEGER NOT NULL,
    PRIMARY KEY (shared_block_id, host_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE shared_run (
    -- ascending in the order of discovery
    run INTEGER PRIMARY KEY,
    repository INTEGER NOT NULL,
    pages INTEGER NOT NULL
) STRICT;

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
, requisite_count INTEGER NOT NULL DEFAULT 0, importance_rules BLOB) STRICT;

CREATE TABLE sitemap (
    hint_source_id INTEGER NOT NULL REFERENCES hint_source ON DELETE CASCADE,
    url TEXT NOT NULL,
    -- the list that named it last; NULL: it was not found in a list
    parent TEXT,
    listed_at REAL NOT NULL,
    -- lists it lies within
    depth INTEGER NOT NULL,
    -- when it was last read to the end and is read next, and the pause that its changes suggest
    read_at REAL,
    next_at REAL NOT NULL,
    every_s REAL,
    etag TEXT,
    last_modified TEXT,
    digest BLOB,
    -- what was in it: entries, and the latest date that can be believed
    entry_count INTEGER NOT NULL DEFAULT 0,
    newest_at REAL,
    trouble TEXT,
    trouble_count INTEGER NOT NULL DEFAULT 0, open_until REAL,
    PRIMARY KEY (hint_source_id, url)
) STRICT, WITHOUT ROWID;

CREATE TABLE sqlite_sequence(name,seq);

CREATE TABLE template (
    host_id INTEGER PRIMARY KEY REFERENCES host,
    rules BLOB NOT NULL,
    confirmations INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE template_use (
    hint_source_id INTEGER PRIMARY KEY REFERENCES hint_source ON DELETE CASCADE,
    surveyed_at REAL NOT NULL,
    -- content pages of the whole wiki
    articles INTEGER NOT NULL,
    -- an object: number of pages by title, of those that most pages use
    uses TEXT NOT NULL
) STRICT;

CREATE TABLE tombstone (
    -- blake2b of the canonical URL, 16 bytes
    url_digest BLOB PRIMARY KEY,
    purged_at REAL NOT NULL,
    reason TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE traffic (
    site_id INTEGER NOT NULL REFERENCES site,
    -- months since the year 0, UTC: 12 * year + month - 1
    month INTEGER NOT NULL,
    received_bytes INTEGER NOT NULL,
    PRIMARY KEY (site_id, month)
) STRICT, WITHOUT ROWID;

CREATE TABLE untold (
    hint_source_id INTEGER NOT NULL REFERENCES hint_source ON DELETE CASCADE,
    page_id INTEGER NOT NULL REFERENCES page ON DELETE CASCADE,
    visited_at REAL NOT NULL, counted INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (hint_source_id, page_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE url_pattern (
    -- a host, or *.example.org
    host TEXT NOT NULL,
    pattern TEXT NOT NULL,
    -- first copies of pages, those of them with new text, and pages without until it ends
    pages INTEGER NOT NULL,
    fresh INTEGER NOT NULL,
    budget INTEGER NOT NULL,
    -- links refused since, and when one was last followed in spite of that
    refused INTEGER NOT NULL,
    probed_at REAL NOT NULL,
    -- zlib of hashes of the text of its pages
    known BLOB NOT NULL,
    PRIMARY KEY (host, pattern)
) STRICT, WITHOUT ROWID;

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
, truncated INTEGER NOT NULL DEFAULT 0 CHECK (truncated IN (0, 1)), profile TEXT) STRICT;

CREATE TABLE version_tag (
    version_id INTEGER NOT NULL REFERENCES version ON DELETE CASCADE,
    plugin TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (version_id, plugin, name)
) STRICT, WITHOUT ROWID;

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
, cleaned_digest BLOB, sketch BLOB, difference REAL) STRICT;

CREATE TABLE volatile (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    rules BLOB NOT NULL
) STRICT;

CREATE TABLE wiki_category (
    site_id INTEGER NOT NULL REFERENCES site,
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    category TEXT NOT NULL,
    PRIMARY KEY (site_id, wiki_id, category)
) STRICT, WITHOUT ROWID;

CREATE TABLE wiki_event (
    wiki_event_id INTEGER PRIMARY KEY,
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    -- move: a page was renamed; category: a page entered a category or left it; page: a title was
    -- created, deleted, restored, imported, or made a redirect
    kind TEXT NOT NULL CHECK (kind IN ('move', 'category', 'page')),
    -- the page, or the category
    title TEXT NOT NULL,
    -- of a move: the new title, and whether the old one redirects to it
    target TEXT,
    leaves_redirect INTEGER,
    -- of a category: the wiki's number of the page
    page_number INTEGER,
    at REAL NOT NULL
) STRICT;

CREATE TABLE wiki_page (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    wiki_id INTEGER NOT NULL REFERENCES wiki,
    title TEXT NOT NULL,
    -- unresolved: the wiki was not yet asked which page shows under the title; open: its revisions
    -- are being read; read: up to complete_until all are here, and the model is not yet made of
    -- them; complete: it is; lost: the wiki shows no page there and its log was not yet read;
    -- missing: it was; refused: the wiki knows no such page
    state TEXT NOT NULL CHECK (
        state IN ('unresolved', 'open', 'read', 'complete', 'lost', 'missing', 'refused')
    ),
    -- the page whose text shows there: the wiki's own number and title (a redirect's target)
    wiki_page_number INTEGER,
    shown_title TEXT,
    latest_revision_id INTEGER,
    -- where to go on reading: the API's own words, never interpreted
    cursor TEXT,
    began_at REAL,
    -- or: as of then the wiki showed no page there
    complete_until REAL,
    -- older revisions beyond the configured number were not read
    capped INTEGER NOT NULL DEFAULT 0,
    -- requests spent in this state, and failures in a row
    tries INTEGER NOT NULL DEFAULT 0,
    failure_count INTEGER NOT NULL DEFAULT 0,
    detail TEXT
, read_down_to_at REAL, read_down_to_id INTEGER) STRICT;

CREATE TABLE wiki_site (
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    site_id INTEGER NOT NULL REFERENCES site,
    -- pages of the site visited before this time are in wiki_page if they have a title
    registered_until REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (wiki_id, site_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE wiki_title (
    site_id INTEGER NOT NULL REFERENCES site,
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    -- its place in the list, from 0
    position INTEGER NOT NULL,
    written TEXT NOT NULL,
    -- in the wiki's spelling; NULL: no page of the wiki can have it
    title TEXT,
    outcome TEXT NOT NULL CHECK (outcome IN (
        'unresolved', 'page', 'redirect', 'missing', 'invalid', 'interwiki', 'duplicate'
    )),
    -- the target of a redirect, the reason of a refusal, the first text that a duplicate repeats
    detail TEXT NOT NULL,
    resolved_at REAL,
    PRIMARY KEY (site_id, wiki_id, position)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX hint_source_of_site ON hint_source (site_id, host_id, kind, url)
    WHERE site_id IS NOT NULL;

CREATE UNIQUE INDEX hint_source_of_wiki ON hint_source (wiki_id, kind) WHERE wiki_id IS NOT NULL;

CREATE UNIQUE INDEX page_url ON page (host_id, url_hash);

CREATE VIRTUAL TABLE page_text USING fts5 (
    title, text, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 2"
);
