-- Time until which the dates of a sitemap are uncertain: a date without a time does not show
-- whether a copy of that day has the change. The file is read again when the day is over. Existing
-- rows are not changed.
ALTER TABLE sitemap ADD COLUMN open_until REAL;
