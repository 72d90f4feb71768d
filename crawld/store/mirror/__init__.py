"""Read-only queries for the web mirror and exports."""
