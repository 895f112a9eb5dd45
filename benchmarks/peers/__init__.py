"""Lamplighter beside other job queues, store by store: `make bench-peers`. See docs/benchmarks.md.

`side`, the adapters and what they import run in an environment of their own, where Lamplighter is
not installed; all else runs in ours.
"""
