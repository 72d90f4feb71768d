"""Sockets: names, addresses, connections, responses, listeners. No other room opens one."""
