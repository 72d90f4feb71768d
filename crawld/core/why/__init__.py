"""Why a URL was, or was not, fetched: facts, the ordered list of causes, and their words."""
