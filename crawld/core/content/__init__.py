"""Content analysis of bodies: type and text, links, blocks, and the difference between two.

Pure functions without I/O or clock. Every body has a defined result, computed in time and memory
linear in its size.
"""
