"""Answers whether a URL was seen before: keys that select, their merge, and checks that decide.

`crawld/store/seen` keeps all of it in the file.
"""
