"""Reads and checks the config file."""
