-- 32 bits of another hash of the URL of a packed page: two URLs of one hash are told apart. NULL: it
-- was packed before, and counts as equal.
ALTER TABLE packed_key ADD COLUMN url_check INTEGER;
