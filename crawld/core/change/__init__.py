"""Models of when pages change: histories, rates, rate classes, renewal processes, page models."""
