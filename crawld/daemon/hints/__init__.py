"""Hearing of changes without visiting pages: who is asked, when, and who hears of it."""
