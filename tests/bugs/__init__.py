"""Planted bugs of kinds that have happened, and how soon the universe finds them."""
