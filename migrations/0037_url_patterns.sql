-- Patterns of URLs that are counted, to see whether they grow without new content: see
-- crawld/core/url_growth.py. At most 1,024 rows.
CREATE TABLE url_pattern (
    -- a host, or *.example.org
    host TEXT NOT NULL,
    pattern TEXT NOT NULL,
    -- first copies of pages, those of them with new text, and pages without until it ends
    pages INTEGER NOT NULL,
    fresh INTEGER NOT NULL,
    budget INTEGER NOT NULL,
    -- links refused since, and when one was last followed in spite of that
    refused INTEGER NOT NULL,
    probed_at REAL NOT NULL,
    -- zlib of hashes of the text of its pages
    known BLOB NOT NULL,
    PRIMARY KEY (host, pattern)
) STRICT, WITHOUT ROWID;
