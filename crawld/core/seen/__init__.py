"""Answers whether a URL was seen before: keys, their merge, and texts that decide.

A key only selects what to compare; two URLs are the same if their texts are. `crawld/store/seen`
keeps all of it in the file.
"""
