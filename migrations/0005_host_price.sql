-- What one visit more to a page of the host must be worth, in weighted fresh seconds: the price of
-- the last allocation. A page's frequency follows from it and its model. NULL: none was made yet.
ALTER TABLE host ADD COLUMN price REAL;
