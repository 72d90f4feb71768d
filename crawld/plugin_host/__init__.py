"""Plug-ins in use: found, loaded, called with limits, and their answers checked.

The interface itself is `crawld/plugins.py`. The daemon, the laboratory and the command lines load
plug-ins here, so that a plug-in is the same object everywhere.
"""
