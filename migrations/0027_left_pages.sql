-- Pages that left the part of a wiki that their site covers: since when, Unix seconds; NULL after a
-- visit since they came back. Readers see it. Existing rows are set after the start.
ALTER TABLE page ADD COLUMN left_at REAL;
CREATE INDEX page_left ON page (site_id) WHERE left_at IS NOT NULL;
