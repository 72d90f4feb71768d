-- The titles of a site that is a part of a wiki: listed, of a category, or of a prefix. They are
-- stored so that they are known at a start without new requests. Existing rows are not changed.
CREATE TABLE wiki_member (
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    title TEXT NOT NULL,
    -- when the wiki last named it
    named_at REAL NOT NULL,
    PRIMARY KEY (wiki_id, title)
) STRICT, WITHOUT ROWID;
