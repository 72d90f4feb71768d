-- Bytes per month received by sites on metered lines. Existing rows are not changed.
CREATE TABLE traffic (
    site_id INTEGER NOT NULL REFERENCES site,
    -- months since the year 0, UTC: 12 * year + month - 1
    month INTEGER NOT NULL,
    received_bytes INTEGER NOT NULL,
    PRIMARY KEY (site_id, month)
) STRICT, WITHOUT ROWID;
