-- Bodies that failed fetches received in part; the next visit asks for the rest. At most 32 rows.
CREATE TABLE partial_body (
    page_id INTEGER PRIMARY KEY REFERENCES page ON DELETE CASCADE,
    received_at REAL NOT NULL,
    -- strong ETag or Last-Modified, as sent
    validator TEXT NOT NULL,
    total_bytes INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
