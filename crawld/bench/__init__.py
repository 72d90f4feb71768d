"""`crawld bench`: each benchmark with its baselines, measured in the same run.

`run.py` knows the benchmarks by name and imports one when it is asked for; `result.py` makes the
value all of them answer with. Peers come with the bench extra or from the distribution; a peer
that is not there is left out and said so.
"""
