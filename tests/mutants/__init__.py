"""Faults put into a copy of the source on purpose: tests of the science must find each."""
