"""The mirror in the forms other programs read, and the way back: directories, archives, tables.

Reads the file beside a running daemon, page by page in short reads, and asks the network nothing.
What is written appears under its name when it is whole, or goes on where it was interrupted.
"""
