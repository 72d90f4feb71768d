-- Text of bodies that have another form, such as PDF: extracted once, read by all that analyse copies.
CREATE TABLE document_text (
    body_id INTEGER PRIMARY KEY REFERENCES body ON DELETE CASCADE,
    -- `identity` or `zstd`, of UTF-8
    encoding TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
