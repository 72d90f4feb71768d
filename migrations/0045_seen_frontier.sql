-- Seen URLs are the keys of packed pages: see crawld/store/seen and crawld/store/frontier/packed.py.
-- What is in packed_key becomes such keys at the next start (crawld/store/frontier/packed_keys.py).
-- No version filled the tables of seen URLs before.
DROP TABLE seen_pending;
DROP TABLE seen_text;
DELETE FROM seen_chunk;
-- From now on its entries are keys of 8 bytes, then checks of 4, then places of 2.
-- The factors of the hashes: who does not know them cannot aim at a collision.
CREATE TABLE seen_seed (seed INTEGER NOT NULL) STRICT;
INSERT INTO seen_seed VALUES (random() & 0x7FFFFFFFFFFFFFFF);
DELETE FROM meta WHERE key = 'seen_seed';
-- Links as visits found them, not divided into repositories yet.
CREATE TABLE seen_found (
    seen_found_id INTEGER PRIMARY KEY,
    urls INTEGER NOT NULL,
    -- zstd frame: sites and depths of 2 bytes, whether each was told to be new in 1, hosts, times of
    -- discovery and referrers of 8 each, then lengths and texts
    links BLOB NOT NULL
) STRICT;
-- Links that wait for the turn of their repository (a hash of the host).
CREATE TABLE seen_pending (
    seen_pending_id INTEGER PRIMARY KEY,
    repository INTEGER NOT NULL CHECK (repository BETWEEN 0 AND 63),
    urls INTEGER NOT NULL,
    -- keys of 8 bytes, then checks of 4 bytes
    entries BLOB NOT NULL,
    -- as above
    links BLOB NOT NULL
) STRICT;
CREATE INDEX seen_pending_repository ON seen_pending (repository, seen_pending_id, urls);
-- How many entries of packed_block of a site on a host are void: their pages wait elsewhere.
CREATE TABLE packed_void (
    host_id INTEGER NOT NULL,
    site_id INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    PRIMARY KEY (host_id, site_id)
) STRICT, WITHOUT ROWID;
