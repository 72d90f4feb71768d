"""The core loop, its state, and the visits it makes."""
