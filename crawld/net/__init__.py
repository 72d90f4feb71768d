"""Name resolution, connections, fetches and listeners; no other package opens sockets."""
