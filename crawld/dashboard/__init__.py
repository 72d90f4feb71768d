"""The dashboard's pages from plain values: figures in words, charts as SVG, templates, a script.

It reads no file and no clock, and knows nothing of the daemon: `crawld/daemon/dashboard` gives it
what the control socket gives too.
"""
