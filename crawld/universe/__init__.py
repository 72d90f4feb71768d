"""A deterministic world for the whole daemon: time, network, threads and kills, drawn from a seed.

The daemon is the production code. It gets a simulated `Environment`, lives on trio's `MockClock`,
and is judged from outside by an auditor that sees the servers and the file.
"""
