"""Experiments on recorded change histories: estimators and policies measured against the truth."""
