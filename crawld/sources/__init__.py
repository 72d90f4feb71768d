"""Reads what sites publish about changes: wiki APIs, sitemaps, feeds, listings, event streams.

Text in, values out; no requests. The daemon sends the requests, in the host's turn.
"""
