"""The SQLite file: all SQL of crawld is in this package.

`engine.database` opens the file and runs the sync functions of the other modules. Each of them
takes a connection first and knows one group of tables. A function that writes runs on the writer
(`Database.write`), all others on any connection. Times (`now`, `*_at`) are Unix seconds.
"""
