-- What the present freshness is estimated from. Existing rows are not changed.

-- Random visits of the last days, counted by hour (UTC, hours since 1970), as in `audit`.
CREATE TABLE audit_hour (
    site_id INTEGER NOT NULL REFERENCES site,
    hour INTEGER NOT NULL,
    fresh INTEGER NOT NULL DEFAULT 0,
    stale INTEGER NOT NULL DEFAULT 0,
    unknown INTEGER NOT NULL DEFAULT 0,
    expected REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (site_id, hour)
) STRICT, WITHOUT ROWID;

-- Visits to pages that no hint named, older ones decayed: how many, how many found a change that no
-- source ever reported, how many changes the models expected, and the time that they cover.
CREATE TABLE quiet_visit (
    site_id INTEGER PRIMARY KEY REFERENCES site,
    visits REAL NOT NULL DEFAULT 0,
    stale REAL NOT NULL DEFAULT 0,
    expected REAL NOT NULL DEFAULT 0,
    exposure_s REAL NOT NULL DEFAULT 0
) STRICT;

-- Pages of the mirror that an edited template (cause) affects, as last listed.
CREATE TABLE fan_out (
    hint_source_id INTEGER NOT NULL REFERENCES hint_source ON DELETE CASCADE,
    cause TEXT NOT NULL,
    pages INTEGER NOT NULL,
    listed_at REAL NOT NULL,
    PRIMARY KEY (hint_source_id, cause)
) STRICT, WITHOUT ROWID;

-- Whether another source of the page has already counted the change as missed.
ALTER TABLE untold ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;

-- Changes of pages that the source did not report, because something that they include changed.
ALTER TABLE hint_source ADD COLUMN explained_count INTEGER NOT NULL DEFAULT 0;
