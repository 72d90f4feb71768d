-- Pins (copies that the operator chose to show) and tombstones (blocked URLs of purged pages).
-- Existing rows are not changed.

-- The copy of a page that is shown instead of newer ones until the pin is released.
CREATE TABLE pin (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    version_id INTEGER NOT NULL REFERENCES version,
    pinned_at REAL NOT NULL
) STRICT;
-- Retention looks up the versions that it removes.
CREATE INDEX pin_version ON pin (version_id);

-- A purged page; only the digest of its URL is stored, since the URL itself may have to be removed.
CREATE TABLE tombstone (
    -- blake2b of the canonical URL, 16 bytes
    url_digest BLOB PRIMARY KEY,
    purged_at REAL NOT NULL,
    reason TEXT
) STRICT, WITHOUT ROWID;
