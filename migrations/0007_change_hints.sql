-- Sources that report changes without a visit to the page, their measured reliability, and their
-- hints until a visit answers them. Existing rows are not changed.

-- A source as one site uses it for one host. Its cursor moves in the transaction that stores its
-- hints: none is lost or counted twice, wherever the process is killed.
CREATE TABLE hint_source (
    hint_source_id INTEGER PRIMARY KEY,
    site_id INTEGER NOT NULL REFERENCES site,
    -- the host whose pages it tells of
    host_id INTEGER NOT NULL REFERENCES host,
    -- recent_changes, probe, sitemap ...; and what is asked
    kind TEXT NOT NULL,
    url TEXT NOT NULL,
    found_at REAL NOT NULL,
    -- where it goes on: the source's own words; told_until: changes up to then have been told
    cursor TEXT,
    told_until REAL,
    last_poll_at REAL,
    next_poll_at REAL,
    poll_count INTEGER NOT NULL DEFAULT 0,
    request_count INTEGER NOT NULL DEFAULT 0,
    -- changes told of pages held; those that visits found to be so, those that were none, and the
    -- changes that visits found and it never told of
    hint_count INTEGER NOT NULL DEFAULT 0,
    real_count INTEGER NOT NULL DEFAULT 0,
    false_count INTEGER NOT NULL DEFAULT 0,
    missed_count INTEGER NOT NULL DEFAULT 0,
    -- from a change to its hint, summed over hints whose instant the source knew
    lag_s REAL NOT NULL DEFAULT 0,
    lag_count INTEGER NOT NULL DEFAULT 0,
    -- evidence of its reliability (core/change/reliability.py), as JSON
    evidence TEXT,
    -- the last answer that was none, how many in a row, and when it may be asked again
    trouble TEXT,
    trouble_detail TEXT,
    trouble_count INTEGER NOT NULL DEFAULT 0,
    closed_until REAL,
    UNIQUE (site_id, host_id, kind, url)
) STRICT;

-- A page with reported changes since its last visit: one row per page and source, regardless of the
-- number of hints, with the first and the last change. A visit deletes it.
CREATE TABLE hint (
    page_id INTEGER NOT NULL REFERENCES page ON DELETE CASCADE,
    hint_source_id INTEGER NOT NULL REFERENCES hint_source ON DELETE CASCADE,
    first_at REAL NOT NULL,
    last_at REAL NOT NULL,
    heard_at REAL NOT NULL,
    told INTEGER NOT NULL,
    PRIMARY KEY (page_id, hint_source_id)
) STRICT, WITHOUT ROWID;

-- A change that a visit found before the source reported it: late if the source reports it later,
-- else missed.
CREATE TABLE untold (
    hint_source_id INTEGER NOT NULL REFERENCES hint_source ON DELETE CASCADE,
    page_id INTEGER NOT NULL REFERENCES page ON DELETE CASCADE,
    visited_at REAL NOT NULL,
    PRIMARY KEY (hint_source_id, page_id)
) STRICT, WITHOUT ROWID;
-- Deleting a page deletes its rows.
CREATE INDEX untold_page ON untold (page_id);

-- The result of the last probe of a page (one request to its wiki covers many pages).
CREATE TABLE probe (
    page_id INTEGER PRIMARY KEY REFERENCES page ON DELETE CASCADE,
    -- NULL: it showed no page there
    revision_id INTEGER,
    touched_at REAL,
    probed_at REAL NOT NULL
) STRICT;
-- Probes read the pages of a wiki in this order.
CREATE INDEX wiki_page_order ON wiki_page (wiki_id, page_id);
