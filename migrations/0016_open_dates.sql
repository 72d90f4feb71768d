-- Until when the dates of a sitemap leave open whether a copy has the change: a bare day says nothing
-- of copies made on it before it is over, and then the file is read again. Files that were read
-- before this are as they were.
ALTER TABLE sitemap ADD COLUMN open_until REAL;
