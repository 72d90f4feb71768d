"""The mirror as web pages: read-only, from the same file, while the daemon writes it."""
