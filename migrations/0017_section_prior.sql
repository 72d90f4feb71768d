-- The prior rate of change of new pages in a section, written by the estimate job.
--
-- Pages of sections without a prior use that of their host. The next run of the job fills it.

CREATE TABLE section (
    host_id INTEGER NOT NULL REFERENCES host,
    name TEXT NOT NULL,
    prior_shape REAL NOT NULL,
    prior_exposure_s REAL NOT NULL,
    PRIMARY KEY (host_id, name)
) STRICT, WITHOUT ROWID;
