-- Requisites: what pages need to be shown (images, styles, scripts, fonts), as pages of their own
-- that are counted, queued and limited apart. What exists are pages proper.

-- 1: loaded for the sake of pages; named by them, never followed.
ALTER TABLE page ADD COLUMN requisite INTEGER NOT NULL DEFAULT 0;

DROP INDEX page_discovered;
CREATE INDEX page_discovered ON page (requisite, host_id, site_id, depth, page_id)
    WHERE state = 'discovered';

-- The counters by state are of pages proper.
ALTER TABLE site ADD COLUMN requisite_count INTEGER NOT NULL DEFAULT 0;

-- Which requisites the last copy of a page (or of a style sheet) names: their page_ids, int64
-- little-endian. Those that none names may go.
CREATE TABLE requisite_use (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    requisites BLOB NOT NULL
) STRICT;
