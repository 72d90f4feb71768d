"""Commands: `crawld` (daemon and offline work) and `crawlctl` (talks to the socket)."""
