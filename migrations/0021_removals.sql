-- Pages that their wiki reports as deleted or moved away, until a visit or the wiki finds them
-- again. Readers see the report at once, before any visit. Existing rows are not changed.
CREATE TABLE removal (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    kind TEXT NOT NULL CHECK (kind IN ('deletion', 'move')),
    -- the earliest and the latest time of the report, by our clock
    first_at REAL NOT NULL,
    last_at REAL NOT NULL,
    -- where it was moved to
    target_url TEXT
) STRICT;
