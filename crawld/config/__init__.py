"""What the operator wrote: one TOML file, read, checked and turned into values of `core/`."""
