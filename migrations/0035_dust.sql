-- What is known of an origin whose URLs were searched for rules (core/dust).
CREATE TABLE dust_origin (
    origin_id INTEGER PRIMARY KEY REFERENCES origin,
    -- first segments of its paths that are sections of their own, as JSON
    sections TEXT NOT NULL,
    -- its pages when its URLs were last read, and when that was
    pages INTEGER NOT NULL,
    read_at REAL NOT NULL,
    -- visits asked for that the crawl would not have made
    asked INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Rules by which URLs of an origin show the same page.
CREATE TABLE dust_rule (
    dust_rule_id INTEGER PRIMARY KEY,
    origin_id INTEGER NOT NULL REFERENCES origin,
    form TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    section TEXT NOT NULL,
    -- trial: pages are compared; refused: they differed; withdrawn: it held, then pages differed
    status TEXT NOT NULL CHECK (status IN ('trial', 'holds', 'refused', 'withdrawn')),
    -- of the operator; it counts before the status
    word TEXT CHECK (word IN ('confirmed', 'revoked')),
    since REAL NOT NULL,
    -- pairs of pages compared, in the trial and after it, and what they say (core/dust/trial.py)
    equal INTEGER NOT NULL DEFAULT 0,
    differing INTEGER NOT NULL DEFAULT 0,
    score REAL NOT NULL DEFAULT 0,
    -- when pages that it hides are visited again
    look_at REAL NOT NULL DEFAULT 0,
    UNIQUE (origin_id, form, name, value, section)
) STRICT;

-- Pages for which another URL stands, or was tried to.
CREATE TABLE dust_page (
    page_id INTEGER PRIMARY KEY REFERENCES page ON DELETE CASCADE,
    origin_id INTEGER NOT NULL REFERENCES origin,
    -- path and query of the URL that stands for it
    canonical TEXT NOT NULL,
    -- hidden: by rules, not compared; asked: both pages are visited to be compared; nothing: the
    -- texts were too short or too frequent to prove anything
    verdict TEXT NOT NULL CHECK (verdict IN ('hidden', 'asked', 'equal', 'differs', 'nothing')),
    at REAL NOT NULL,
    -- the trial for which it was compared, and the value that its rule removes; NULL: a sample
    dust_rule_id INTEGER REFERENCES dust_rule ON DELETE SET NULL,
    value TEXT NOT NULL DEFAULT '',
    -- digest of the main text of both; NULL: not equal
    digest BLOB,
    -- comparisons that differed because of the time between the two visits
    tries INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX dust_page_origin ON dust_page (origin_id, verdict);
CREATE INDEX dust_page_rule ON dust_page (dust_rule_id) WHERE dust_rule_id IS NOT NULL;
