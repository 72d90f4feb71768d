"""Content analysis of bodies: type and text, links, blocks, and the difference between two.

Functions of values: nothing here fetches, stores or knows the time. Every body has a defined
result, within time and memory linear in its size.
"""
