"""URLs that were seen, as packed blocks: text once, twelve bytes beside it.

Each function works in the transaction of its caller, so all of it is stored or nothing.
"""
