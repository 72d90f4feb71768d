"""Replicated hosts: detection without labels, with reasons, apart from hosts that only look alike.

Source: Carvalho 2014 (UFMG), "A Lazy Associative Classifier for replicated sites"; where it leaves
a choice open, the module concerned states the choice and its reason.
"""
