-- Whether a copy is only the start of a page that is larger than the limits of its site.
ALTER TABLE version ADD COLUMN truncated INTEGER NOT NULL DEFAULT 0 CHECK (truncated IN (0, 1));
