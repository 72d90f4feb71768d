-- Events: each real change of a page that a visit found or its wiki reported, for feeds and
-- notifications. Existing pages have none; those that are known to be away are marked as such, so
-- that they are not reported once more. The mirror gets an identity, which makes the ids of its
-- events unique among all mirrors.
CREATE TABLE event (
    -- never used again: clients know an event by it
    event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    site_id INTEGER NOT NULL REFERENCES site,
    page_id INTEGER NOT NULL REFERENCES page ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('new', 'changed', 'moved', 'gone', 'back')),
    at REAL NOT NULL,
    -- the copies after and before; not referenced, because retention may delete them
    version_id INTEGER,
    before_id INTEGER,
    -- size of the change, a share of the text
    difference REAL,
    -- where it moved to
    target_url TEXT
) STRICT;
CREATE INDEX event_page ON event (page_id);
CREATE INDEX event_site ON event (site_id, kind);
CREATE INDEX event_kind ON event (kind);
-- what the last event of a page said of it; NULL: the page is there
ALTER TABLE page ADD COLUMN absent TEXT CHECK (absent IN ('moved', 'gone'));
UPDATE page SET absent = iif(redirect_url IS NOT NULL, 'moved', 'gone')
WHERE requisite = 0 AND change_count > 0 AND (
    redirect_url IS NOT NULL OR state = 'gone' OR gone_count > 0
    OR page_id IN (SELECT page_id FROM removal)
);
CREATE TABLE mirror (mirror_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO mirror VALUES (lower(hex(randomblob(16))));
