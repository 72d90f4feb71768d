"""Export of the mirror to directories, archives and tables, and import from archives and lists.

An export reads the database while a daemon runs, page by page in short reads, and never uses the
network. A target file appears under its name when it is complete; a directory can be continued
after an interruption.
"""
