"""The daemon beside hostile servers, in simulated time."""
