-- Gone pages: hosts that lose too many pages at once to be believed, and the responses of origins
-- to paths that never existed. Existing rows are not changed.

-- Since when pages of the host are kept although they seem to vanish; NULL: they do not.
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
