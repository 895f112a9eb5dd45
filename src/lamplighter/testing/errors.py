"""What a test is told when its store is not as it expected. Each of them fails a test."""

from __future__ import annotations

from lamplighter.model.errors import LamplighterError


class NotSubmitted(LamplighterError, AssertionError):
    """A job that the test expects was not submitted, or not as often as it says."""

    code = "not-submitted"


class StillSubmitted(LamplighterError, AssertionError):
    """A job that must not be there was submitted."""

    code = "still-submitted"


class NothingDue(LamplighterError, AssertionError):
    """No job is due that a worker could take."""

    code = "nothing-due"


class NeverIdle(LamplighterError, AssertionError):
    """Jobs kept falling due, far more often than a test can mean."""

    code = "never-idle"
