"""One visit after its fetch: what the response means, and what is recorded."""
