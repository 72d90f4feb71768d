"""Parses the change information of sites: wiki APIs, sitemaps, feeds, listings, event streams.

Pure parsing without requests; the daemon sends the requests within the host's slots.
"""
