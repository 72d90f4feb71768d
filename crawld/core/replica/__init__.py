"""Detects replicated hosts without labelled data, gives reasons, and rejects mere look-alikes.

Source: Carvalho 2014 (UFMG), "A Lazy Associative Classifier for replicated sites"; each module
states the choices that the source leaves open, with reasons.
"""
