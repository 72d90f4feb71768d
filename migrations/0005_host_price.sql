-- The price of a visit from the last allocation: the weighted fresh seconds that one more visit to
-- a page of the host must gain. Price and model determine a page's frequency. NULL: none yet.
ALTER TABLE host ADD COLUMN price REAL;
