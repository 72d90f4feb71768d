"""Coverage-guided fuzzing of everything that reads what the world sends."""
