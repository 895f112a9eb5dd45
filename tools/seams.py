"""Refuse a clock, a sleep or a source of chance that does not come from `lamplighter.runtime`.

Simulation replaces the runtime. Whatever reads the time or draws a number beside it would run
in another world than the rest, so every module but `runtime.py` has to ask the runtime.

Usage: python tools/seams.py [FOLDER]
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REMEDY = "use lamplighter.runtime"

MODULES = frozenset({"random", "secrets", "time", "uuid"})

NAMES = frozenset(
    {
        "asyncio.sleep",
        "asyncio.tasks.sleep",
        "datetime.date.today",
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
        "os.getrandom",
        "os.urandom",
    }
)

LOOP_MAKERS = frozenset({"get_event_loop", "get_running_loop", "new_event_loop"})

IMPORTERS = frozenset({"__import__", "importlib.import_module"})


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One place that goes past the runtime."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}: {REMEDY}"


def findings(root: Path) -> list[Finding]:
    """What the modules under `root` do past the runtime, in order of file and line."""
    found: list[Finding] = []
    for path in sorted(root.rglob("*.py")):
        if path != root / "runtime.py":
            found.extend(check(path))
    return sorted(set(found))


def check(path: Path) -> Iterator[Finding]:
    """What one module does past the runtime."""
    tree = ast.parse(path.read_bytes(), filename=str(path))
    names = Names(tree)
    for node in ast.walk(tree):
        for what in offences(node, names):
            yield Finding(path, getattr(node, "lineno", 0), what)


def offences(node: ast.AST, names: "Names") -> Iterator[str]:
    """The names of what is wrong with this node alone."""
    match node:
        case ast.Import(names=aliases):
            yield from (alias.name for alias in aliases if _top(alias.name) in MODULES)
        case ast.ImportFrom(module=str(module), level=0) if _top(module) in MODULES:
            yield module
        case ast.ImportFrom(module=str(module), level=0, names=aliases):
            imported = (f"{module}.{alias.name}" for alias in aliases)
            yield from (name for name in imported if name in NAMES)
        case ast.Attribute(attr="time", value=value) if names.is_loop(value):
            yield "time() of an event loop"
        case ast.Attribute() if (name := names.resolve(node)) in NAMES:
            yield str(name)
        case ast.Call(func=function, args=[ast.Constant(value=str(module)), *_]) if (
            names.resolve(function) in IMPORTERS and _top(module) in MODULES
        ):
            yield module
        case _:
            pass


class Names:
    """What the names of a module stand for. Scopes are not told apart: a lint may be strict."""

    def __init__(self, tree: ast.Module) -> None:
        self._imported: dict[str, str] = {"__import__": "__import__"}
        self._loops: set[str] = set()
        for node in ast.walk(tree):
            self._learn(node)

    def resolve(self, node: ast.expr) -> str | None:
        """The full dotted name that `node` refers to, if it starts at an import."""
        match node:
            case ast.Name(id=name):
                return self._imported.get(name)
            case ast.Attribute(value=value, attr=attribute):
                owner = self.resolve(value)
                return f"{owner}.{attribute}" if owner else None
            case _:
                return None

    def is_loop(self, node: ast.expr) -> bool:
        """Whether `node` is an event loop, by how it was made or by its name."""
        if isinstance(node, ast.Call):
            return _last(node.func) in LOOP_MAKERS
        name = _last(node)
        return name in self._loops or name == "loop" or name.endswith("_loop")

    def _learn(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    # `import a.b` binds `a`, `import a.b as c` binds the inner module.
                    top = _top(alias.name)
                    self._imported[alias.asname or top] = alias.name if alias.asname else top
            case ast.ImportFrom(module=str(module), level=0, names=aliases):
                for alias in aliases:
                    self._imported[alias.asname or alias.name] = f"{module}.{alias.name}"
            case ast.Assign(targets=targets, value=ast.Call(func=function)):
                if _last(function) in LOOP_MAKERS:
                    self._loops.update(_last(target) for target in targets)
            case (
                ast.AnnAssign(target=target, value=ast.Call(func=function))
                | ast.NamedExpr(target=target, value=ast.Call(func=function))
            ):
                if _last(function) in LOOP_MAKERS:
                    self._loops.add(_last(target))
            case _:
                pass


def _top(module: str) -> str:
    return module.partition(".")[0]


def _last(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def main(arguments: list[str]) -> int:
    """Print the findings; the exit code says whether there are any."""
    root = Path(arguments[0]) if arguments else Path("src/lamplighter")
    if not root.is_dir():
        print(f"error: no folder `{root}`\n\nhint: run this from the repository's root")
        return 2
    found = findings(root)
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
