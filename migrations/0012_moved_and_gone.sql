-- Gone pages: hosts where so many pages disappear at once that a fault is likely, and the responses
-- of origins to paths that never existed. Existing rows are not changed.

-- Time since which disappearing pages of the host are kept; NULL: too few disappear.
ALTER TABLE host ADD COLUMN vanishing_since REAL;

CREATE INDEX page_vanished ON page (host_id, gone_since) WHERE gone_count > 0;

-- The response of an origin to a path that never existed.
CREATE TABLE absence (
    origin_id INTEGER PRIMARY KEY REFERENCES origin,
    probed_at REAL NOT NULL,
    -- of the answer; NULL: there was none
    status INTEGER,
    -- of the text of a 200, and where a redirect led to
    sketch BLOB,
    redirect_url TEXT
) STRICT;
