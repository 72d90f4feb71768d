-- More bits of the hash of each URL decide instead of its text. No version filled these tables.
DROP TABLE seen_pending;
DROP TABLE seen_text;
DELETE FROM seen_chunk;
-- URLs that wait for their verdict.
CREATE TABLE seen_pending (
    seen_pending_id INTEGER PRIMARY KEY,
    -- 0 to 63; 64: not divided into repositories yet
    repository INTEGER NOT NULL CHECK (repository BETWEEN 0 AND 64),
    urls INTEGER NOT NULL,
    -- keys of 8 bytes, then checks of 4 bytes, then events of 1 byte; before them the repositories of
    -- URLs that were not divided
    entries BLOB NOT NULL,
    -- zstd frame of lengths and texts
    texts BLOB NOT NULL
) STRICT;
CREATE INDEX seen_pending_repository ON seen_pending (repository, seen_pending_id, urls);
-- The check and the text of each URL, by its number in its repository.
CREATE TABLE seen_text (
    seen_text_id INTEGER PRIMARY KEY,
    repository INTEGER NOT NULL CHECK (repository BETWEEN 0 AND 63),
    first_number INTEGER NOT NULL,
    urls INTEGER NOT NULL,
    -- 4 bytes each; before the texts, so that reading them reads no page of texts
    checks BLOB NOT NULL,
    -- zstd frame of lengths and texts
    texts BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX seen_text_repository ON seen_text (repository, first_number);
