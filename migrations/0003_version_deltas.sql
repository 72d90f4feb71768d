-- Superseded bodies become deltas: zstd frames whose dictionary is another body. The table is made
-- anew and its rows are copied, because base_id has to stand before the data: what stands behind a
-- long value is only reached by reading all of it, and chains are walked often. Rows keep their
-- numbers, all of them whole; the compact job takes them from there.

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
