-- URLs that were seen, by repository (a hash of the host): see crawld/store/seen.
-- URLs that wait for their verdict.
CREATE TABLE seen_pending (
    seen_pending_id INTEGER PRIMARY KEY,
    -- 0 to 63; 64: not divided into repositories yet
    repository INTEGER NOT NULL CHECK (repository BETWEEN 0 AND 64),
    urls INTEGER NOT NULL,
    -- keys of 8 bytes, then events of 1 byte
    entries BLOB NOT NULL,
    -- zstd frame of lengths and texts
    texts BLOB NOT NULL
) STRICT;
CREATE INDEX seen_pending_repository ON seen_pending (repository, seen_pending_id, urls);
-- Keys in ascending order, with the number and mark of each URL.
CREATE TABLE seen_chunk (
    seen_chunk_id INTEGER PRIMARY KEY,
    repository INTEGER NOT NULL CHECK (repository BETWEEN 0 AND 63),
    -- the least key that belongs here, less 2^63
    first_key INTEGER NOT NULL,
    urls INTEGER NOT NULL,
    -- keys of 8 bytes, then references of 4 bytes
    entries BLOB NOT NULL
) STRICT;
CREATE INDEX seen_chunk_repository ON seen_chunk (repository, first_key, urls);
-- The text of each URL, by its number in its repository.
CREATE TABLE seen_text (
    seen_text_id INTEGER PRIMARY KEY,
    repository INTEGER NOT NULL CHECK (repository BETWEEN 0 AND 63),
    first_number INTEGER NOT NULL,
    urls INTEGER NOT NULL,
    -- zstd frame of lengths and texts
    texts BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX seen_text_repository ON seen_text (repository, first_number);
