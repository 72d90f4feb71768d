"""Work beside the crawl, one file a job; `runner` says when each is due."""
