"""Which URLs a large frontier knows, as packed blocks of fourteen bytes a URL.

Each function works in the transaction of its caller, so all of it is stored or nothing.
"""
