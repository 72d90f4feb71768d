-- Packed pages of many hosts with few each: see crawld/store/frontier/packed_shared.py.
-- What turns of one repository found, merged with others: ordered by host, site, depth, discovery.
CREATE TABLE shared_run (
    -- ascending in the order of discovery
    run INTEGER PRIMARY KEY,
    repository INTEGER NOT NULL,
    pages INTEGER NOT NULL
) STRICT;
CREATE INDEX shared_run_repository ON shared_run (repository, run, pages);
CREATE TABLE shared_block (
    -- above those of packed_block
    shared_block_id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES shared_run,
    -- of the hosts of a run, this and the next until the next block begins
    first_host INTEGER NOT NULL,
    -- zstd frame: steps of hosts, sites, depths and numbers of entries
    queues BLOB NOT NULL,
    -- as those of packed_block
    entries BLOB NOT NULL
) STRICT;
CREATE INDEX shared_block_order ON shared_block (run, first_host);
-- Hosts whose entries moved to blocks of their own: those in a shared block are no more.
CREATE TABLE shared_drawn (
    shared_block_id INTEGER NOT NULL REFERENCES shared_block,
    host_id INTEGER NOT NULL,
    PRIMARY KEY (shared_block_id, host_id)
) STRICT, WITHOUT ROWID;
