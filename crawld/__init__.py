"""An embedded crawler daemon: one process, one SQLite file, a fresh and polite mirror."""
