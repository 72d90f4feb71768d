-- Revisions that polls of the recent changes bring without a request for each page: a history that
-- was complete at fed_since or later is complete until fed_until. NULL: no poll has brought any.
ALTER TABLE wiki ADD COLUMN fed_since REAL;
ALTER TABLE wiki ADD COLUMN fed_until REAL;
