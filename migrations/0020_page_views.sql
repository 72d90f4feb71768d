-- The rules by which the importance of a site's pages was computed last (digest of its weights and
-- its file of views); NULL: by none.
ALTER TABLE site ADD COLUMN importance_rules BLOB;
