"""One visit after its fetch: judge the response, learn from it, and record it."""
