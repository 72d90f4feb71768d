"""A hostile web on real sockets: families of servers that try to stop, fill or mislead a crawler.

A case is one host on its own loopback address. It says what its server sends and which outcomes of
its page are right. `crawld bench hostile` and `tests/hostile` run all of them against a daemon.
"""
