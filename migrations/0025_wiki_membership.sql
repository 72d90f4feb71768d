-- Why each title belongs to a part of a wiki, what became of the titles that the operator listed,
-- and reported changes that are not yet applied. Titles known before keep belonging to their parts
-- until the next complete listing names them again.

CREATE TABLE wiki_member_of_part (
    site_id INTEGER NOT NULL REFERENCES site,
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    title TEXT NOT NULL,
    reason TEXT NOT NULL
        CHECK (reason IN ('title', 'category', 'prefix', 'redirect', 'move', 'former')),
    -- the category, the prefix, the redirect, or the former or new title; empty for a listed title
    via TEXT NOT NULL,
    -- when it began to belong, and when the wiki last said so
    since REAL NOT NULL,
    named_at REAL NOT NULL,
    PRIMARY KEY (site_id, wiki_id, title, reason, via)
) STRICT, WITHOUT ROWID;
INSERT INTO wiki_member_of_part
SELECT site_id, wiki_id, title, 'title', '', named_at, named_at FROM wiki_member;
DROP TABLE wiki_member;
ALTER TABLE wiki_member_of_part RENAME TO wiki_member;

-- A title that the operator listed, and what the wiki says about it.
CREATE TABLE wiki_title (
    site_id INTEGER NOT NULL REFERENCES site,
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    -- its place in the list, from 0
    position INTEGER NOT NULL,
    written TEXT NOT NULL,
    -- in the wiki's spelling; NULL: no page of the wiki can have it
    title TEXT,
    outcome TEXT NOT NULL CHECK (outcome IN (
        'unresolved', 'page', 'redirect', 'missing', 'invalid', 'interwiki', 'duplicate'
    )),
    -- the target of a redirect, the reason of a refusal, the first text that a duplicate repeats
    detail TEXT NOT NULL,
    resolved_at REAL,
    PRIMARY KEY (site_id, wiki_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX wiki_title_title ON wiki_title (site_id, wiki_id, title);

-- Categories whose pages belong to a part, and the levels below each that do.
CREATE TABLE wiki_category (
    site_id INTEGER NOT NULL REFERENCES site,
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    category TEXT NOT NULL,
    PRIMARY KEY (site_id, wiki_id, category)
) STRICT, WITHOUT ROWID;

-- A change that a wiki reported, and that the parts of its sites do not reflect yet.
CREATE TABLE wiki_event (
    wiki_event_id INTEGER PRIMARY KEY,
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    -- move: a page was renamed; category: a page entered a category or left it; page: a title was
    -- created, deleted, restored, imported, or made a redirect
    kind TEXT NOT NULL CHECK (kind IN ('move', 'category', 'page')),
    -- the page, or the category
    title TEXT NOT NULL,
    -- of a move: the new title, and whether the old one redirects to it
    target TEXT,
    leaves_redirect INTEGER,
    -- of a category: the wiki's number of the page
    page_number INTEGER,
    at REAL NOT NULL
) STRICT;
CREATE INDEX wiki_event_wiki ON wiki_event (wiki_id, wiki_event_id);

-- While a history is read: the revision at which its last part ended; older ones are still to come.
ALTER TABLE wiki_page ADD COLUMN read_down_to_at REAL;
ALTER TABLE wiki_page ADD COLUMN read_down_to_id INTEGER;
