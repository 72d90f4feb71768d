"""`crawld bench`: benchmarks, each measured together with its baselines in one run.

`run.py` maps names to modules; `result.py` builds the result they all return. Peer programs come
with the bench extra or the Linux distribution; a missing peer is reported and left out.
"""
