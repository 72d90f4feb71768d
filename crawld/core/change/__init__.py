"""When pages change: histories, rates, rate classes, renewal processes and the page model."""
