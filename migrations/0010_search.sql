-- The full-text index of the newest copy of each page, by page_id. It holds no text of its own
-- (contentless): snippets of hits are read from the copies. The search job fills it; its cursor is
-- in meta (search_version). The first runs index existing copies.
CREATE VIRTUAL TABLE page_text USING fts5 (
    title, text, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 2"
);
-- A word in the title counts eight times.
INSERT INTO page_text (page_text, rank) VALUES ('rank', 'bm25(8.0, 1.0)');
