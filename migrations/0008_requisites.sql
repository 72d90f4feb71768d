-- Requisites: what pages need to be shown (images, styles, scripts, fonts), as pages of their own
-- that are counted, queued and limited separately. Existing rows are pages proper.

-- 1: a requisite: fetched because pages need it; its links are not followed.
ALTER TABLE page ADD COLUMN requisite INTEGER NOT NULL DEFAULT 0;

DROP INDEX page_discovered;
CREATE INDEX page_discovered ON page (requisite, host_id, site_id, depth, page_id)
    WHERE state = 'discovered';

-- The counters by state count pages proper.
ALTER TABLE site ADD COLUMN requisite_count INTEGER NOT NULL DEFAULT 0;

-- Which requisites the last copy of a page (or of a style sheet) needs: their page_ids, int64
-- little-endian. Those that no page needs may be evicted.
CREATE TABLE requisite_use (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    requisites BLOB NOT NULL
) STRICT;
