"""How fast, at which cost: `python -m benchmarks --engine sqlite`. See docs/benchmarks.md."""
