-- Which request brought the copy held and its validators, where profiles or plug-ins change it: the
-- digest of what a server may choose its answer by, 8 bytes; NULL: the usual request.
ALTER TABLE page ADD COLUMN form BLOB;
-- The same of the start of a body: the rest of another form does not continue it.
ALTER TABLE partial_body ADD COLUMN form BLOB;
