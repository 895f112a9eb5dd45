"""Submissions over HTTP: ours beside FastAPI in front of other job queues."""
