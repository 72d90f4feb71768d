-- Former URLs of pages: of those that the rules for canonical URLs renamed, and of those that were
-- joined with another. See crawld/store/frontier/page_name.py.
CREATE TABLE page_name (
    host_id INTEGER NOT NULL REFERENCES host,
    url_hash INTEGER NOT NULL,
    url TEXT NOT NULL,
    page_id INTEGER NOT NULL REFERENCES page ON DELETE CASCADE,
    PRIMARY KEY (host_id, url_hash, url)
) STRICT, WITHOUT ROWID;

CREATE INDEX page_name_page ON page_name (page_id);
