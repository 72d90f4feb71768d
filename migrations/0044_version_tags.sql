-- Short texts that plug-ins keep with a copy. Those of a plug-in that is no longer used stay, and are
-- read by nobody.
CREATE TABLE version_tag (
    version_id INTEGER NOT NULL REFERENCES version ON DELETE CASCADE,
    plugin TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (version_id, plugin, name)
) STRICT, WITHOUT ROWID;
