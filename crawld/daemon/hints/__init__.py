"""Change hints: sources that report changes, so that unchanged pages need no visit."""
