"""What tells of changes without a visit to the page: histories, lists, announcements.

Only text in and values out: how to ask, and what an answer means. The daemon asks, in the host's
turn.
"""
