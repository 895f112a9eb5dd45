"""A child as its supervisor sees it, without a process."""

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.worker.link import Claimed, Started
from lamplighter.worker.process import ChildProcess, Hooks, Plan
from tests.unit.worker.fakes import FakeLink

SETTINGS = Settings(lease=30.0)
NONCE = "f" * 16


class Child(ChildProcess):
    """A child without a process."""

    def __init__(self) -> None:
        plan = Plan(spec="x:y", settings=SETTINGS, slots=1, queues=None, events=False)
        hooks = Hooks(
            on_hello=lambda *_: None,
            on_resync=lambda *_: None,
            on_told=lambda *_: None,
            on_convicted=lambda *_: None,
            on_hurt=lambda *_: None,
            on_let_go=lambda *_: None,
        )
        super().__init__("w/c0", plan, hooks)
        self.line = FakeLink()
        self.line.read = lambda: None
        self._link = self.line
        self.ready = True
        self.killed = False

    def kill(self) -> None:
        self.killed = True

    def claims(self, *numbers: int, sent_at: float = 1000.0) -> None:
        for number in numbers:
            self._hear(Claimed(NONCE, number, sent_at, [(f"{number:026d}", 1, f"type-{number}")]))

    def starts(self, *numbers: int, hard_end: float = 5000.0, at: float | None = None) -> None:
        began = runtime.boottime() if at is None else at
        self._hear(Started([(number, hard_end) for number in numbers], began))

    def heard(self, kind: type) -> list[list[int]]:
        return [message.numbers for message in self.line.of(kind)]
