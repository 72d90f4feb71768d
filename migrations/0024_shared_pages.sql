-- A page has one site, for which it is visited. Other sites whose parts of a wiki name it too list it
-- among their pages. Existing rows are not changed.
CREATE TABLE page_share (
    -- the other site
    site_id INTEGER NOT NULL REFERENCES site,
    page_id INTEGER NOT NULL REFERENCES page ON DELETE CASCADE,
    PRIMARY KEY (site_id, page_id)
) STRICT, WITHOUT ROWID;
-- Deleting a page deletes its rows.
CREATE INDEX page_share_page ON page_share (page_id);
