"""A simulated web on real sockets that knows the truth, for the demo, tests and benchmarks.

A site (`site.py`) is a seeded graph of pages (`graph.py`). Its pages change by known processes
(`change_process.py`, `page_text.py`, `render.py`), and it misbehaves on demand (`fault.py`,
`trap.py`). The server (`server.py`) records every request in a ledger (`ledger.py`); `truth.py`
computes how fresh a mirror really is.
"""
