"""A web of look-alikes: hosts that resemble each other and are no copies, true copies, attackers.

Written from what real webs contain, before the replica verdict that it tests. The truth is known by
page (`pages.py`) and by host (`host.py`); a web is a pure function of its parameters and its seed.
"""
