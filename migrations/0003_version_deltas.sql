-- Superseded bodies become deltas: zstd frames whose dictionary is another body. The table is
-- created again and its rows are copied, because base_id must come before the data: SQLite reads
-- all of a long value to reach a column after it, and chains are followed often. Rows keep their
-- keys and stay whole; the compact job makes the first deltas.

CREATE TABLE body_with_base (
    body_id INTEGER PRIMARY KEY,
    -- blake2b of the decoded body, 16 bytes; equal bodies are stored once
    digest BLOB NOT NULL UNIQUE,
    encoding TEXT NOT NULL CHECK (encoding IN ('identity', 'zstd')),
    size_bytes INTEGER NOT NULL,
    -- the body whose decoded bytes are the dictionary of the data; NULL: the data stand alone
    base_id INTEGER REFERENCES body CHECK (base_id IS NULL OR encoding = 'zstd'),
    data BLOB NOT NULL
) STRICT;

INSERT INTO body_with_base (body_id, digest, encoding, size_bytes, data)
SELECT body_id, digest, encoding, size_bytes, data FROM body;

DROP TABLE body;
ALTER TABLE body_with_base RENAME TO body;

CREATE INDEX body_base ON body (base_id) WHERE base_id IS NOT NULL;
