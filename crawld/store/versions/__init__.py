"""Stored copies of pages: versions, bodies, retention and purge."""
