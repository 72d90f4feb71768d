-- Never-visited pages of a large frontier, packed: see crawld/store/frontier/packed.py. A page is
-- here or a row of `page`, never both.
CREATE TABLE packed_key (
    host_id INTEGER NOT NULL,
    -- the key that its row will have
    url_hash INTEGER NOT NULL,
    site_id INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    PRIMARY KEY (host_id, url_hash)
) STRICT, WITHOUT ROWID;
-- Their URLs in the order of discovery. An entry whose key has another site or depth, or none, is
-- void.
CREATE TABLE packed_block (
    packed_block_id INTEGER PRIMARY KEY,
    host_id INTEGER NOT NULL REFERENCES host,
    site_id INTEGER NOT NULL REFERENCES site,
    depth INTEGER NOT NULL,
    -- entries, void ones included
    pages INTEGER NOT NULL,
    -- zstd frame: times of discovery and referrers of 8 bytes each, then lengths and texts
    entries BLOB NOT NULL
) STRICT;
CREATE INDEX packed_block_order
    ON packed_block (host_id, site_id, depth, packed_block_id, pages);
