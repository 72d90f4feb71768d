"""Which events a notification rule reports, and when."""
