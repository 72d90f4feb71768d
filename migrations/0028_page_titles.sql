-- Pages with a copy in the order of their titles, for lists of sites and suggestions while typing.
-- Pages without a title are listed by their URL; a title may have megabytes, so only its beginning
-- is in the index.
CREATE INDEX page_title
    ON page (site_id, substr(ifnull(nullif(title, ''), url), 1, 80) COLLATE NOCASE)
    WHERE version_id IS NOT NULL AND requisite = 0;
