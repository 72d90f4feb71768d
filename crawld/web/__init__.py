"""The web mirror: a read-only HTTP application on the database, also while the daemon writes."""
