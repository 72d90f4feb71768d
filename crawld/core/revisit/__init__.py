"""Revisit scheduling: how often pages are visited, and which page is visited next."""
