"""Sites, hosts and page queues in memory."""
