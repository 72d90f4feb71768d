-- The titles that make up a site which is a part of a wiki: listed, of a category, of a prefix.
-- Kept so that a start knows them before the wiki is asked again. Nothing that exists is touched.
CREATE TABLE wiki_member (
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    title TEXT NOT NULL,
    -- when the wiki last named it
    named_at REAL NOT NULL,
    PRIMARY KEY (wiki_id, title)
) STRICT, WITHOUT ROWID;
