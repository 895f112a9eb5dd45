"""Children are told when firing goes first."""

from lamplighter.config import Settings
from lamplighter.coordinator import services
from lamplighter.fleet import Fleet
from lamplighter.worker.link import MakeWay
from lamplighter.worker.rush import make_way
from tests.unit.worker.fakes import make_engine


class Child:
    def __init__(self, *, ready: bool) -> None:
        self.ready = ready
        self.heard: list = []

    def say(self, message) -> None:
        self.heard.append(message)


async def test_what_fires_schedules_can_ask_all_children_that_work_to_make_way():
    old, young, late = Child(ready=True), Child(ready=False), Child(ready=True)
    children = [old, young]
    every = services(make_engine(), Settings(), Fleet())

    make_way(every, lambda: children)
    asking = [one for one in every if getattr(one, "on_rush", None) is not None]
    assert [one.name for one in asking] == ["fire"]
    (firer,) = asking
    firer.on_rush(2.0)
    children.append(late)
    firer.on_rush(0.0)

    assert old.heard == [MakeWay(2.0), MakeWay(0.0)]
    assert young.heard == []
    assert late.heard == [MakeWay(0.0)]
