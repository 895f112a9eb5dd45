"""What makes a measurement worthless."""


class BenchmarkError(Exception):
    """Jobs were lost, doubled or early, or a process died: there is nothing to report."""
