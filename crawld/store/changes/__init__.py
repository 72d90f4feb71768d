"""Tables about change: models, exact changes, hints and their sources."""
