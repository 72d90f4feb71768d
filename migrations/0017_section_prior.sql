-- What the rates of new pages of a section are expected to be: written by the estimate job.
--
-- A host keeps its own prior for pages of sections that have none. Nothing is known at first: the
-- next run of the job fills the table.

CREATE TABLE section (
    host_id INTEGER NOT NULL REFERENCES host,
    name TEXT NOT NULL,
    prior_shape REAL NOT NULL,
    prior_exposure_s REAL NOT NULL,
    PRIMARY KEY (host_id, name)
) STRICT, WITHOUT ROWID;
