"""A simulated web on real sockets that knows the truth: demo, tests and benchmarks run against it.

Sites (`site.py`) are seeded graphs (`graph.py`) whose pages change by known laws (`law.py`,
`prose.py`, `render.py`); they misbehave on demand (`fault.py`, `trap.py`). The server
(`server.py`) notes every request in a ledger (`ledger.py`), and `truth.py` says how fresh a mirror
truly is.
"""
