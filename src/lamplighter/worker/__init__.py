"""Workers: a supervisor that keeps leases, and its children that run jobs."""
