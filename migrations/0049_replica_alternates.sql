-- Hosts besides the canonical one under which a page of a replica may rest: a page whose text is not
-- that of the canonical host, or that it does not have, may have that of another name of its group.
CREATE TABLE replica_alternate (
    server_id INTEGER NOT NULL REFERENCES replica ON DELETE CASCADE,
    alternate_id INTEGER NOT NULL,
    PRIMARY KEY (server_id, alternate_id)
) STRICT, WITHOUT ROWID;

-- The servers of origins at other ports, which are few: a row of `origin` has a whole robots.txt.
CREATE INDEX origin_server ON origin (origin_id, server_id) WHERE server_id IS NOT NULL;
