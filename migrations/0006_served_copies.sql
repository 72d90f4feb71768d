-- Pins and tombstones: copies that the operator fixed, and URLs of purged pages, which must never
-- come back. Existing rows are not changed.

-- The copy of a page that is shown instead of newer ones, until it is released.
CREATE TABLE pin (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    version_id INTEGER NOT NULL REFERENCES version,
    pinned_at REAL NOT NULL
) STRICT;
-- Retention looks up the versions that it removes.
CREATE INDEX pin_version ON pin (version_id);

-- A purged page, known by the digest of its URL alone, for the URL itself may be what had to be
-- removed.
CREATE TABLE tombstone (
    -- blake2b of the canonical URL, 16 bytes
    url_digest BLOB PRIMARY KEY,
    purged_at REAL NOT NULL,
    reason TEXT
) STRICT, WITHOUT ROWID;
