-- Digest of the cleaned text and sketch of pages and visits, evidence about noise, validators and
-- rates. New columns of existing rows are NULL: the analyse job and the next visits fill them.

-- The last good copy: digest of its cleaned text, sketch for near-duplicates, and the number of
-- visits in a row that found the content changed.
ALTER TABLE page ADD COLUMN cleaned_digest BLOB;
ALTER TABLE page ADD COLUMN sketch BLOB;
ALTER TABLE page ADD COLUMN change_streak INTEGER NOT NULL DEFAULT 0;

-- The same for each visit with a body, and its weighted difference from the previous copy, 0 to 1
-- (NULL: there was none). A body with the exact digest of the last copy has no sketch of its own.
ALTER TABLE visit ADD COLUMN cleaned_digest BLOB;
ALTER TABLE visit ADD COLUMN sketch BLOB;
ALTER TABLE visit ADD COLUMN difference REAL;

-- Evidence about the validators of an origin and its clock (core/validators.py).
ALTER TABLE origin ADD COLUMN validators BLOB;

-- Clock of the host minus ours, from its Date; and the prior rate of change of its pages.
ALTER TABLE host ADD COLUMN clock_skew_s REAL;
ALTER TABLE host ADD COLUMN prior_shape REAL;
ALTER TABLE host ADD COLUMN prior_exposure_s REAL;

-- Which blocks change by themselves (core/content/volatile.py), on one page and on all pages of a
-- host. confirmations: extra fetches made to learn them.
CREATE TABLE volatile (
    page_id INTEGER PRIMARY KEY REFERENCES page,
    rules BLOB NOT NULL
) STRICT;
CREATE TABLE template (
    host_id INTEGER PRIMARY KEY REFERENCES host,
    rules BLOB NOT NULL,
    confirmations INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The age-aware model of a site's change intervals (core/change/scale.py), as JSON.
CREATE TABLE scale (
    site_id INTEGER PRIMARY KEY REFERENCES site,
    fitted_at REAL NOT NULL,
    model TEXT NOT NULL
) STRICT;
