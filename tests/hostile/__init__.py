"""Whoever reaches the HTTP service may send it anything: so we do."""
