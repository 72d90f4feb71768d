"""Real SIGKILLs at named points of real work on real files, and what they leave."""
