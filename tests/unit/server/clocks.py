"""A clock that tests can put forward."""

from lamplighter import runtime


class Clock(runtime.System):
    """The real world, some seconds later."""

    def __init__(self, later: float = 0.0) -> None:
        super().__init__()
        self.later = later

    def now_ms(self) -> int:
        return super().now_ms() + round(self.later * 1000)

    def monotonic(self) -> float:
        return super().monotonic() + self.later

    def boottime(self) -> float:
        return super().boottime() + self.later
