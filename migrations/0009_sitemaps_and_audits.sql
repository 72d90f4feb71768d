-- Sitemap files as last read, and results of random visits to copies. Existing rows are not
-- changed; the index takes some 20 bytes per page with a copy.

-- A file of a sitemap, named by robots.txt, the config or a sitemap index.
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
    trouble_count INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (hint_source_id, url)
) STRICT, WITHOUT ROWID;
CREATE INDEX sitemap_next ON sitemap (hint_source_id, next_at);

-- Random visits, counted by day (UTC, days since 1970): copies that equal the page, copies that
-- differ, inconclusive visits; and the sum of the probabilities that the change models expected.
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

-- The copies that an audit draws from, each with the same probability.
CREATE INDEX page_held ON page (site_id, host_id)
    WHERE state = 'visited' AND version_id IS NOT NULL AND requisite = 0;
