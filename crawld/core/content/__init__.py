"""What a body says: its type and text, its links, its blocks, and how it differs from another.

Values in, values out. Nothing here fetches, stores or knows the time. Every function has a defined
answer for every body, within time and memory that grow no faster than the body does.
"""
