-- Exact change histories: wikis, how far the history of each of their pages is read, the times of
-- changes, and the change model of each page. Existing rows are not changed.

-- A wiki as one site uses it; permission to call its API (api = true) belongs to the site.
CREATE TABLE wiki (
    wiki_id INTEGER PRIMARY KEY,
    site_id INTEGER NOT NULL REFERENCES site,
    origin_id INTEGER NOT NULL REFERENCES origin,
    -- when pages of the origin were last looked at; api_url NULL: they were no wiki's
    looked_at REAL NOT NULL,
    api_url TEXT,
    -- what the wiki says of itself (JSON), and when it said so
    facts TEXT,
    facts_at REAL,
    -- pages visited before this instant are among wiki_page if they have a title
    registered_until REAL NOT NULL DEFAULT 0,
    request_count INTEGER NOT NULL DEFAULT 0,
    change_count INTEGER NOT NULL DEFAULT 0,
    -- the last answer that was none, how many in a row, and when the API may be asked again
    trouble TEXT,
    trouble_detail TEXT,
    trouble_count INTEGER NOT NULL DEFAULT 0,
    closed_until REAL,
    UNIQUE (site_id, origin_id)
) STRICT;

-- A page whose URL is a title of a wiki, and how far its history is read.
CREATE TABLE wiki_page (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    wiki_id INTEGER NOT NULL REFERENCES wiki,
    title TEXT NOT NULL,
    -- unresolved: the wiki was not yet asked which page shows under the title; open: its revisions
    -- are being read; read: up to complete_until all are here, and the model is not yet made of
    -- them; complete: it is; lost: the wiki shows no page there and its log was not yet read;
    -- missing: it was; refused: the wiki knows no such page
    state TEXT NOT NULL CHECK (
        state IN ('unresolved', 'open', 'read', 'complete', 'lost', 'missing', 'refused')
    ),
    -- the page whose text shows there: the wiki's own number and title (a redirect's target)
    wiki_page_number INTEGER,
    shown_title TEXT,
    latest_revision_id INTEGER,
    -- where to go on reading: the API's own words, never interpreted
    cursor TEXT,
    began_at REAL,
    -- or: as of then the wiki showed no page there
    complete_until REAL,
    -- older revisions beyond the configured number were not read
    capped INTEGER NOT NULL DEFAULT 0,
    -- requests spent in this state, and failures in a row
    tries INTEGER NOT NULL DEFAULT 0,
    failure_count INTEGER NOT NULL DEFAULT 0,
    detail TEXT
) STRICT;
-- The next page to read is the one with the fewest requests; also counts pages by state.
CREATE INDEX wiki_page_state ON wiki_page (wiki_id, state, tries, page_id);
-- Finds the stored history of the page that a redirect shows.
CREATE INDEX wiki_page_number ON wiki_page (wiki_id, wiki_page_number)
    WHERE wiki_page_number IS NOT NULL;

-- One row per change whose time is exactly known, clustered by page in order of time. revision_id:
-- the wiki's revision, or the entry of its log. kind: NULL is an edit; null: a revision with the
-- same text as the one before; revert: a text that was there earlier. digest: the first 8 bytes of
-- the text's SHA-1; NULL if the wiki hides it.
CREATE TABLE change (
    page_id INTEGER NOT NULL REFERENCES page,
    changed_at REAL NOT NULL,
    revision_id INTEGER NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('revision', 'log')),
    kind TEXT CHECK (kind IN ('null', 'revert', 'deletion', 'restoration', 'move')),
    size_bytes INTEGER,
    digest INTEGER,
    PRIMARY KEY (page_id, changed_at, revision_id, source)
) STRICT, WITHOUT ROWID;

-- The change model of a page (core/change/record.py).
CREATE TABLE model (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    record BLOB NOT NULL
) STRICT;
