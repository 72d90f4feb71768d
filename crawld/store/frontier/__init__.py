"""Tables of sites, hosts and pages: what to fetch and when."""
