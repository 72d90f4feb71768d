"""Experiments that compare estimators and policies with the truth on known change histories."""
