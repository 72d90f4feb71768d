"""Revisit scheduling: how often each page is worth a visit, and which page is visited next."""
