-- Until when the dates of a sitemap do not tell whether a copy has the change: a date without a
-- time says nothing about copies of that day before the day is over, and then the file is read
-- again. Files that were read before are not changed.
ALTER TABLE sitemap ADD COLUMN open_until REAL;
