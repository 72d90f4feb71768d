-- A wiki is one source for all sites that have pages of it: its API is detected and asked once.
-- Existing rows: the wikis, hint sources and hints of several sites on one origin are merged; of
-- the cursors the oldest is kept, so that no change is missed.

CREATE TEMP TABLE merged_wiki AS
SELECT wiki_id AS old_id, first_value(wiki_id) OVER (
    PARTITION BY origin_id ORDER BY facts IS NULL, api_url IS NULL, wiki_id
) AS wiki_id
FROM wiki;

CREATE TABLE shared_wiki (
    wiki_id INTEGER PRIMARY KEY,
    origin_id INTEGER NOT NULL UNIQUE REFERENCES origin,
    -- when pages of the origin were last checked; api_url NULL: they were no wiki's
    looked_at REAL NOT NULL,
    api_url TEXT,
    -- the wiki's own description (JSON), and when it was read
    facts TEXT,
    facts_at REAL,
    request_count INTEGER NOT NULL DEFAULT 0,
    change_count INTEGER NOT NULL DEFAULT 0,
    -- the last failure, failures in a row, and when the API may be asked again
    trouble TEXT,
    trouble_detail TEXT,
    trouble_count INTEGER NOT NULL DEFAULT 0,
    closed_until REAL
) STRICT;
INSERT INTO shared_wiki
SELECT wiki_id, origin_id, looked_at, api_url, facts, facts_at,
    (SELECT sum(request_count) FROM wiki AS other WHERE other.origin_id = wiki.origin_id),
    (SELECT sum(change_count) FROM wiki AS other WHERE other.origin_id = wiki.origin_id),
    trouble, trouble_detail, trouble_count, closed_until
FROM wiki WHERE wiki_id IN (SELECT wiki_id FROM merged_wiki);

-- The sites that use a wiki: they say api = true, and have pages or seeds on its origin.
CREATE TABLE wiki_site (
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    site_id INTEGER NOT NULL REFERENCES site,
    -- pages of the site visited before this time are in wiki_page if they have a title
    registered_until REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (wiki_id, site_id)
) STRICT, WITHOUT ROWID;
INSERT INTO wiki_site
SELECT merged_wiki.wiki_id, site_id, registered_until
FROM wiki JOIN merged_wiki ON merged_wiki.old_id = wiki.wiki_id;

-- The titles of a site that is a part of a wiki.
CREATE TABLE site_member (
    site_id INTEGER NOT NULL REFERENCES site,
    wiki_id INTEGER NOT NULL REFERENCES wiki ON DELETE CASCADE,
    title TEXT NOT NULL,
    -- when the wiki last listed it
    named_at REAL NOT NULL,
    PRIMARY KEY (site_id, wiki_id, title)
) STRICT, WITHOUT ROWID;
INSERT INTO site_member
SELECT wiki.site_id, merged_wiki.wiki_id, title, named_at
FROM wiki_member JOIN wiki USING (wiki_id) JOIN merged_wiki ON merged_wiki.old_id = wiki.wiki_id;

-- A source belongs to one site, or to a wiki and all its sites.
CREATE TABLE shared_source (
    hint_source_id INTEGER PRIMARY KEY,
    site_id INTEGER REFERENCES site,
    wiki_id INTEGER REFERENCES wiki,
    -- the host whose pages it reports on
    host_id INTEGER NOT NULL REFERENCES host,
    -- recent_changes, probe, sitemap ...; and what is asked
    kind TEXT NOT NULL,
    url TEXT NOT NULL,
    found_at REAL NOT NULL,
    -- where the next poll continues; told_until: changes up to then have been reported
    cursor TEXT,
    told_until REAL,
    last_poll_at REAL,
    next_poll_at REAL,
    poll_count INTEGER NOT NULL DEFAULT 0,
    request_count INTEGER NOT NULL DEFAULT 0,
    -- reported changes of known pages; those that visits confirmed; those that they did not; and
    -- the changes that visits found and the source never reported
    hint_count INTEGER NOT NULL DEFAULT 0,
    real_count INTEGER NOT NULL DEFAULT 0,
    false_count INTEGER NOT NULL DEFAULT 0,
    missed_count INTEGER NOT NULL DEFAULT 0,
    -- from a change to its hint, summed over hints whose time the source knew
    lag_s REAL NOT NULL DEFAULT 0,
    lag_count INTEGER NOT NULL DEFAULT 0,
    -- evidence of its reliability (core/change/reliability.py), as JSON
    evidence TEXT,
    -- the last failure, failures in a row, and when it may be asked again
    trouble TEXT,
    trouble_detail TEXT,
    trouble_count INTEGER NOT NULL DEFAULT 0,
    closed_until REAL,
    CHECK ((site_id IS NULL) <> (wiki_id IS NULL))
) STRICT;

CREATE TEMP TABLE merged_source AS
SELECT hint_source_id AS old_id, merged_wiki.wiki_id, first_value(hint_source_id) OVER (
    PARTITION BY merged_wiki.wiki_id, kind
    ORDER BY wiki.api_url <> hint_source.url, told_until IS NULL, told_until, hint_source_id
) AS hint_source_id
FROM hint_source
JOIN wiki ON wiki.site_id = hint_source.site_id
JOIN origin ON origin.origin_id = wiki.origin_id AND origin.host_id = hint_source.host_id
JOIN merged_wiki ON merged_wiki.old_id = wiki.wiki_id
WHERE kind IN ('recent_changes', 'probe', 'fan_out') AND wiki.api_url IS NOT NULL;

INSERT INTO shared_source
SELECT hint_source_id, site_id, NULL, host_id, kind, url, found_at, cursor, told_until,
    last_poll_at, next_poll_at, poll_count, request_count, hint_count, real_count, false_count,
    missed_count, lag_s, lag_count, evidence, trouble, trouble_detail, trouble_count, closed_until
FROM hint_source WHERE kind NOT IN ('recent_changes', 'probe', 'fan_out');
-- OR IGNORE: two origins of one host may name one API; the other wiki gets new sources.
INSERT OR IGNORE INTO shared_source
SELECT hint_source.hint_source_id, NULL, merged.wiki_id, host_id, kind, url, found_at, cursor,
    told_until, last_poll_at, next_poll_at, poll_count, request_count, hint_count, real_count,
    false_count, missed_count, lag_s, lag_count, evidence, trouble, trouble_detail, trouble_count,
    closed_until
FROM hint_source
JOIN (SELECT DISTINCT wiki_id, hint_source_id FROM merged_source) AS merged
  ON merged.hint_source_id = hint_source.hint_source_id;

UPDATE OR IGNORE hint
SET hint_source_id = (
    SELECT min(hint_source_id) FROM merged_source WHERE old_id = hint.hint_source_id
)
WHERE hint_source_id IN (SELECT old_id FROM merged_source);
DELETE FROM hint WHERE hint_source_id NOT IN (SELECT hint_source_id FROM shared_source);
DELETE FROM untold WHERE hint_source_id NOT IN (SELECT hint_source_id FROM shared_source);

UPDATE wiki_page
SET wiki_id = (SELECT wiki_id FROM merged_wiki WHERE old_id = wiki_page.wiki_id);

DROP TABLE merged_source;
DROP TABLE merged_wiki;
DROP TABLE wiki_member;
DROP TABLE hint_source;
DROP TABLE wiki;
ALTER TABLE shared_wiki RENAME TO wiki;
ALTER TABLE site_member RENAME TO wiki_member;
ALTER TABLE shared_source RENAME TO hint_source;

CREATE UNIQUE INDEX hint_source_of_site ON hint_source (site_id, host_id, kind, url)
    WHERE site_id IS NOT NULL;
CREATE UNIQUE INDEX hint_source_of_wiki ON hint_source (wiki_id, kind) WHERE wiki_id IS NOT NULL;
