-- What a content is beyond its exact digest, what is learnt about noise, validators and rates, and
-- the links of the change models to their hosts. Rows that exist keep NULL: the analyse job and the
-- next visits fill it in.

-- The last good copy: digest of its cleaned text and sketch for near-duplicates, and how many
-- visits in a row found its content changed.
ALTER TABLE page ADD COLUMN cleaned_digest BLOB;
ALTER TABLE page ADD COLUMN sketch BLOB;
ALTER TABLE page ADD COLUMN change_streak INTEGER NOT NULL DEFAULT 0;

-- The same of each visit that brought a body, and its weighted difference from the copy held
-- before, 0 to 1 (NULL: there was none). A body whose exact digest is that of the copy held has the
-- sketch of that copy, and none of its own.
ALTER TABLE visit ADD COLUMN cleaned_digest BLOB;
ALTER TABLE visit ADD COLUMN sketch BLOB;
ALTER TABLE visit ADD COLUMN difference REAL;

-- Evidence about the validators of an origin and its clock (core/validators.py).
ALTER TABLE origin ADD COLUMN validators BLOB;

-- Clock of the host less ours, from its Date; and what its pages' rates are expected to be.
ALTER TABLE host ADD COLUMN clock_skew_s REAL;
ALTER TABLE host ADD COLUMN prior_shape REAL;
ALTER TABLE host ADD COLUMN prior_exposure_s REAL;

-- Which blocks change by themselves (core/content/volatile.py), on one page and on all pages of a
-- host. confirmations: second readings of fresh pages that were asked for to learn them.
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
