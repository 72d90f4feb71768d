"""Requests: how they are built, metered, and allowed by robots.txt."""
