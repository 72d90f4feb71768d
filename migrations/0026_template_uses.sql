-- How many pages of a wiki use its templates and files, counted by the wiki itself: the edit of one
-- that was never listed (fan_out) affects about as many.
CREATE TABLE template_use (
    hint_source_id INTEGER PRIMARY KEY REFERENCES hint_source ON DELETE CASCADE,
    surveyed_at REAL NOT NULL,
    -- content pages of the whole wiki
    articles INTEGER NOT NULL,
    -- an object: number of pages by title, of those that most pages use
    uses TEXT NOT NULL
) STRICT;
