"""The web mirror: a read-only HTTP application on the database of a running or stopped daemon."""
