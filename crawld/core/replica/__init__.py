"""Replicated hosts: found without labels, explained, kept apart from what only looks alike.

Source: Carvalho 2014 (UFMG), "A Lazy Associative Classifier for replicated sites"; where it leaves
something open, the module concerned says what was settled and why.
"""
