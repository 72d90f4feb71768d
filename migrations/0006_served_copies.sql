-- What is shown of a page, and what must never come back: copies that the operator holds, and the
-- addresses of pages that were taken down. Nothing that exists is touched.

-- The copy of a page that is shown whatever newer ones say, until it is released.
CREATE TABLE pin (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    version_id INTEGER NOT NULL REFERENCES version,
    pinned_at REAL NOT NULL
) STRICT;
-- A version that retention gives up is looked for here.
CREATE INDEX pin_version ON pin (version_id);

-- A page that was taken down: its URL is known by its digest alone, for the URL may be what had
-- to go.
CREATE TABLE tombstone (
    -- blake2b of the canonical URL, 16 bytes
    url_digest BLOB PRIMARY KEY,
    purged_at REAL NOT NULL,
    reason TEXT
) STRICT, WITHOUT ROWID;
