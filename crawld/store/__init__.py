"""The one SQLite file: SQL lives in this folder and nowhere else.

`database` opens the file and runs the sync functions of the other modules, each of which takes a
connection first and knows one group of tables.
"""
