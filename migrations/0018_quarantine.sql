-- Pages and documents under way when the process was killed, froze or died. They are stored without
-- analysis until the operator releases them or the analyser's version changes. Existing rows are not
-- changed.
CREATE TABLE quarantine (
    url TEXT PRIMARY KEY,
    -- NULL: no page, such as a robots.txt, a sitemap or the answer of an API
    page_id INTEGER REFERENCES page,
    -- what was under way
    step TEXT NOT NULL CHECK (step IN ('decoding', 'analysis')),
    -- 0: a suspect, analysed once more; 1: not analysed
    held INTEGER NOT NULL CHECK (held IN (0, 1)),
    analyser_version INTEGER NOT NULL,
    found_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX quarantine_page ON quarantine (page_id);
