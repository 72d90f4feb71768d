"""The SQLite file: all SQL of crawld is in this package.

`engine.database` opens the file and runs the sync functions of the other modules. Each of them
takes a connection first and knows one group of tables.
"""
