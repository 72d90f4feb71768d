"""The control socket: its HTTP server, its routes and their responses."""
