"""Rows about hosts with the same content."""
