-- What one more visit to a page of the host must be worth, in weighted fresh seconds: the price of
-- the last allocation. It determines a page's frequency, with its model. NULL: no allocation yet.
ALTER TABLE host ADD COLUMN price REAL;
