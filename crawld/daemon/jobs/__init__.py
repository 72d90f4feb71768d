"""Background jobs, one file each; `runner` decides when each runs."""
