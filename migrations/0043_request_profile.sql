-- Which request profile brings the wanted form of pages, learnt for each site and host.
CREATE TABLE request_profile (
    site_id INTEGER NOT NULL REFERENCES site ON DELETE CASCADE,
    host_id INTEGER NOT NULL REFERENCES host ON DELETE CASCADE,
    -- JSON by profile name
    learnt TEXT NOT NULL,
    PRIMARY KEY (site_id, host_id)
) STRICT, WITHOUT ROWID;

-- Name of the profile that brought a copy in the wanted form; NULL: no profile, or another form.
ALTER TABLE version ADD COLUMN profile TEXT;
