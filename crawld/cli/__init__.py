"""Command-line programs: `crawld` (daemon, offline commands), `crawlctl` (controls a daemon)."""
