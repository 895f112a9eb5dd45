"""Control groups for slot processes."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamplighter.model.isolation import Limits
from lamplighter.worker import cgroup
from lamplighter.worker.cgroup import PREFIX, Group, Groups

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these")


class Tree:
    """A folder that looks like a tree of control groups, and like its description in /proc."""

    def __init__(self, root: Path) -> None:
        self.mount = root / "cgroup"
        self.proc = root / "proc"
        self.proc.mkdir()
        self.place("/service")
        self.mounted("/")

    def mounted(self, top: str) -> None:
        (self.proc / "mountinfo").write_text(
            "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
            f"41 31 0:38 {top} {self.mount} rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
        )

    def place(self, own: str) -> None:
        (self.proc / "cgroup").write_text(f"3:cpuset:/\n0::{own}\n")

    def group(self, place: str, *, controllers: str = "cpu memory pids", on: str = "") -> Path:
        folder = self.mount / place.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.controllers").write_text(controllers)
        (folder / "cgroup.subtree_control").write_text(on)
        (folder / "cgroup.procs").write_text("")
        return folder


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_groups_are_made_with_their_limits(tree: Tree):
    own = tree.group("/service")
    groups = cgroup.find(tree.proc)

    group = groups.make(Limits(memory_mb=300, processes=20))
    group.add(4711)
    group.kill()

    assert group.path.parent == own
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"
    written = {file.name: file.read_text() for file in group.path.iterdir()}
    assert written == {
        "memory.max": str(300 << 20),
        "memory.oom.group": "1",
        "memory.swap.max": "0",
        "pids.max": "20",
        "cgroup.procs": "4711",
        "cgroup.kill": "1",
    }


def test_without_limits_a_group_only_holds_processes_together(tree: Tree):
    tree.group("/service", on="memory pids")
    group = cgroup.find(tree.proc).make(Limits(cpu_seconds=5))
    assert list(group.path.iterdir()) == []


def test_in_a_container_the_place_is_counted_from_the_mounted_group(tree: Tree):
    tree.mounted("/docker/abc")
    tree.place("/docker/abc/service")
    own = tree.group("/service")
    assert cgroup.find(tree.proc).make(Limits()).path.parent == own


@pytest.mark.parametrize("controllers", ["", "cpu memory", "pids hugetlb"])
def test_without_both_controllers_there_are_no_groups(tree: Tree, controllers: str):
    tree.group("/service", controllers=controllers)
    assert cgroup.find(tree.proc) is None


def test_without_control_groups_of_version_2_there_are_no_groups(tree: Tree):
    tree.group("/service")
    (tree.proc / "cgroup").write_text("4:memory:/\n")
    assert cgroup.find(tree.proc) is None
    (tree.proc / "cgroup").unlink()
    assert cgroup.find(tree.proc) is None


def test_the_group_above_is_taken_only_if_it_was_delegated(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
):
    above = tree.group("/service")
    own = tree.group("/service/worker", controllers="")
    tree.place("/service/worker")
    assert cgroup.find(tree.proc) is None

    def delegated(path: Path, name: str) -> bytes:
        if path == above and name == "user.delegate":
            return b"1"
        raise OSError

    monkeypatch.setattr(os, "getxattr", delegated)
    assert cgroup.find(tree.proc).make(Limits()).path.parent == above
    assert not list(own.glob(f"{PREFIX}*"))


def test_what_killed_workers_have_left_is_removed(tree: Tree):
    own = tree.group("/service")
    dead = subprocess.Popen(["true"])
    dead.wait()
    (own / f"{PREFIX}{dead.pid}-00000000").mkdir()
    alive = own / f"{PREFIX}{os.getpid()}-00000000"
    alive.mkdir()

    Groups(own)

    assert list(own.glob(f"{PREFIX}*")) == [alive]


def test_a_group_tells_whether_it_ran_out_of_memory(tmp_path: Path):
    group = Group(tmp_path)
    assert not group.ran_out_of_memory
    (tmp_path / "memory.events").write_text("low 0\noom 0\noom_kill 0\n")
    assert not group.ran_out_of_memory
    (tmp_path / "memory.events").write_text("low 0\noom 2\noom_kill 2\n")
    assert group.ran_out_of_memory


@pytest.fixture
def real() -> Iterator[Path]:
    """A group of the system itself, where one can be made."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line and os.access(line.split(" ")[4], os.W_OK):
            base = Path(line.split(" ")[4]) / f"lamplighter-test-{os.getpid()}"
            with contextlib.suppress(OSError):
                base.mkdir()
                break
    else:
        pytest.skip("no control group can be made here")
    yield base
    base.rmdir()


def test_a_real_group_ends_all_that_is_in_it_and_is_removed(real: Path):
    group = Groups(real).make(Limits())
    shell = subprocess.Popen(["sh", "-c", "read go; setsid sleep 120 & sleep 120"], stdin=-1)
    group.add(shell.pid)
    shell.stdin.write(b"go\n")
    shell.stdin.close()
    inside = group.path / "cgroup.procs"
    while len(inside.read_text().split()) < 3:
        assert shell.poll() is None

    group.kill()

    assert shell.wait(10) == -9
    while inside.read_text():
        pass
    group.remove()
    assert not group.path.exists()
