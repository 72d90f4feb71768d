"""Experiments on recorded change histories: estimators and policies compared with the truth."""
