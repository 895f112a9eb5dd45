"""Writes `docs/reference/python.md`: every public name of the package, read off its source.

`python tools/python_reference.py` writes it, `--check` fails when it differs from the code.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import ParamSpec, TypeVar

import lamplighter
from lamplighter.model.errors import LamplighterError

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "python.md"

REACHED = {
    "app.jobs": "inspection.jobs.Jobs",
    "app.dead_letters": "inspection.jobs.DeadLetters",
    "app.queues": "inspection.settings.Queues",
    "app.tenants": "inspection.settings.Tenants",
    "app.types": "inspection.settings.Types",
    "app.workers": "inspection.settings.Workers",
    "app.schedules": "schedules.schedules.Schedules",
}
"""What is not imported but reached through an app."""
OPTIONS = {
    "Options of a job type": "options.TypeOptions",
    "Options of a submission": "options.SubmitOptions",
    "Options of a schedule": "schedules.making.ScheduleOptions",
    "Selection of jobs": "inspection.jobs.JobSelection",
}
"""Keyword arguments that several calls take."""
VALUES = {
    "Backfill": "port.schedules.Backfill",
    "Calendar": "model.schedule.calendar.Calendar",
    "ChangeAction": "inspection.jobs.ChangeAction",
    "ChangeAnswer": "model.changes.ChangeAnswer",
    "Delivery": "model.job.Delivery",
    "Explanation": "port.values.Explanation",
    "Extras": "model.job.Extras",
    "Fence": "model.job.Fence",
    "Flag": "context.Flag",
    "Gap": "model.schedule.cron.Gap",
    "JobState": "model.job.JobState",
    "Level": "model.job.Level",
    "Mark": "model.job.Mark",
    "Names": "inspection.jobs.Names",
    "Overlap": "model.schedule.cron.Overlap",
    "Prepared": "job.Prepared",
    "Priority": "options.Priority",
    "Preview": "model.schedule.preview.Preview",
    "Put": "port.schedules.Put",
    "PutAnswer": "port.schedules.PutAnswer",
    "Reason": "port.values.Reason",
    "Redact": "hooks.Redact",
    "Refusal": "model.job.Refusal",
    "RetryFunction": "model.retry.RetryFunction",
    "RunKind": "port.schedules.RunKind",
    "RunRecord": "port.schedules.RunRecord",
    "RunState": "port.schedules.RunState",
    "Schedule": "schedules.stored.Schedule",
    "ScheduleAnswer": "port.schedules.ScheduleAnswer",
    "ScheduleChanged": "port.schedules.ScheduleChanged",
    "ScheduleFilter": "port.schedules.ScheduleFilter",
    "ScheduleRecord": "port.schedules.ScheduleRecord",
    "Spec": "model.recurring.Spec",
    "Stored job": "model.job.Job",
    "SubmitAnswer": "port.values.SubmitAnswer",
    "Triggered": "port.schedules.Triggered",
    "Why": "port.values.Why",
}
"""Types of parameters, fields and results that are not imported from `lamplighter`."""
GIVEN = frozenset({"Call", "Context", "Handle", "Job", "Prepared"})
"""Classes of which users are given instances and make none."""
INNER = frozenset(
    {
        *("Clocks", "Engine", "Expression", "JobType", "NewJob", "NewSchedule", "Policy"),
        *("Registry", "Template", "config"),
    }
)
"""Types of the inside: one call gives them, for another to take, or they are for who reads on."""
HEAD = """\
# Python

Everything that `from lamplighter import …` offers, read off the source. The guides explain how it
is used: [jobs](../guides/jobs.md), [handlers](../guides/handlers.md),
[schedules](../guides/schedules.md), [testing](../guides/testing.md). Errors have
[a page of their own](errors.md). A method whose name ends in `_sync` does the same for code
without an event loop and is not listed again.
"""


def page() -> str:
    """Return the whole page."""
    errors, others = [], []
    for name in lamplighter.__all__:
        value = getattr(lamplighter, name)
        is_error = isinstance(value, type) and issubclass(value, LamplighterError)
        (errors if is_error or name == "errors" else others).append(name)
    parts = [HEAD]
    parts += [section(name, getattr(lamplighter, name)) for name in others]
    parts += ["## Reached through an app\n"]
    parts += [section(name, found(path), level=3) for name, path in REACHED.items()]
    parts += ["## Keyword options\n"]
    parts += [section(name, found(path), level=3) for name, path in OPTIONS.items()]
    parts += [
        "## Other types\n",
        "Of parameters, fields and results. They are not imported from `lamplighter`.\n",
    ]
    parts += [section(name, found(path), level=3) for name, path in VALUES.items()]
    listed = ", ".join(f"`{name}`" for name in errors)
    parts += [f"## Errors\n\n{listed}: see [errors](errors.md).\n"]
    return "\n".join(parts)


def _sections() -> dict[str, object]:
    """Return what the page has a heading for."""
    paths = {**REACHED, **OPTIONS, **VALUES}
    reached = {title: found(path) for title, path in paths.items()}
    return {**{name: getattr(lamplighter, name) for name in lamplighter.__all__}, **reached}


def found(path: str) -> object:
    """Return what a dotted path below the package names."""
    module, name = path.rsplit(".", 1)
    return getattr(import_module(f"lamplighter.{module}"), name)


def unexplained() -> list[tuple[str, str]]:
    """Return types of ours that the page names and does not explain, each with its section."""
    shown = {title: value for title, value in _sections().items() if not inspect.ismodule(value)}
    known = {*lamplighter.__all__, *INNER}
    known |= {each.__name__ for each in shown.values() if isinstance(each, type)} | {*VALUES}
    return sorted(
        {
            (name, title)
            for title, value in shown.items()
            for node in _annotations(title, value)
            for name in _named(node)
            if name not in known and _ours(name, value)
        }
    )


def _annotations(title: str, value: object) -> list[ast.expr]:
    """Return the annotations that a section shows."""
    if not isinstance(value, type) and not inspect.isfunction(value):
        return []
    tree = _tree(value)
    if not isinstance(tree, ast.ClassDef):
        return _of_call(tree)
    made = _constructor(title, tree)
    shown = [
        one.annotation
        for one in tree.body
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and not one.target.id.startswith("_")
    ]
    for one in tree.body:
        name = getattr(one, "name", "")
        if _is_listed(one) or (name == "__init__" and made):
            shown += _of_call(one)
    return shown


def _of_call(node: ast.stmt) -> list[ast.expr]:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return []
    given = node.args
    each = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    found = [one.annotation for one in each if one is not None]
    return [one for one in (*found, node.returns) if one is not None]


def _named(node: ast.expr) -> set[str]:
    """Return the names in an annotation."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _ours(name: str, user: object) -> bool:
    """Tell whether a name, where this value is defined, is a type of this package."""
    module = sys.modules[str(user.__module__)]
    imported = _imported(module).get(name)
    if imported is not None:
        return imported.split(".")[0] == "lamplighter"
    is_variable = isinstance(getattr(module, name, None), (TypeVar, ParamSpec))
    return name in vars(module) and not is_variable


@cache
def _imported(module: ModuleType) -> dict[str, str]:
    """Return the names that a module imports, also those for the type checker alone."""
    return {
        one.asname or one.name: str(node.module)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom)
        for one in node.names
    }


def section(title: str, value: object, level: int = 2) -> str:
    """Return heading, text and members of one name."""
    heading = "#" * level
    if inspect.isfunction(value):
        shape = _signature(title, _tree(value))
        return f"{heading} {title}\n\n```text\n{shape}\n```\n\n{_prose(inspect.getdoc(value))}\n"
    if not isinstance(value, type):
        return f"{heading} {title}\n\n{_alias(title)}\n"
    tree = _tree(value)
    if not isinstance(tree, ast.ClassDef):
        raise TypeError(value)
    lines = [f"{heading} {title}", ""]
    if made := _constructor(title, tree):
        lines += [f"```text\n{made}\n```", ""]
    lines += [_prose(ast.get_docstring(tree)), ""]
    rows = [*_fields(tree), *_methods(tree)]
    if rows:
        lines += ["| member | meaning |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _alias(name: str) -> str:
    """Return definition and text of a name that stands for a type, from the module it is in."""
    homes = [module for module, names in lamplighter._HOMES.items() if name in names]  # noqa: SLF001
    home = VALUES[name].rpartition(".")[0] if name in VALUES else homes[0]
    source = Path(str(import_module(f"lamplighter.{home}").__file__)).read_text(encoding="utf-8")
    body = ast.parse(source).body
    for node, text in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return f"```text\n{ast.unparse(node)}\n```\n\n{_prose(_text_of(text))}"
    raise LookupError(name)


def _tree(value: object) -> ast.stmt:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]  # pyright: ignore[reportArgumentType]


def _constructor(title: str, tree: ast.ClassDef) -> str:
    """Return how an instance is made, where users make one."""
    if (
        title in GIVEN
        or title.startswith("app.")
        or not any(isinstance(one, ast.FunctionDef) and one.name == "__init__" for one in tree.body)
    ):
        return ""
    (made,) = [
        one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"
    ]
    return _signature(title, made).removesuffix(" -> None")


def _signature(name: str, node: ast.stmt) -> str:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise TypeError(node)
    given = ast.unparse(node.args)
    for bound in ("self, /, ", "self, ", "cls, ", "self", "cls"):
        if given.startswith(bound) and given[: len(bound)] == bound:
            given = given.removeprefix(bound)
            break
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    prefix = "await " if isinstance(node, ast.AsyncFunctionDef) and not _yields(node) else ""
    return f"{prefix}{name}({given}){returns}"


def _yields(node: ast.AsyncFunctionDef) -> bool:
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(node))


def _fields(tree: ast.ClassDef) -> list[str]:
    """Return a row per public field, with the text that stands below it."""
    rows: list[str] = []
    for field, text in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            name, kind = field.target.id, ast.unparse(field.annotation)
        elif isinstance(field, ast.Assign) and isinstance(field.targets[0], ast.Name):
            name, kind = field.targets[0].id, ""
        else:
            continue
        if name.startswith("_"):
            continue
        shown = f"`{name}: {kind}`" if kind else f"`{name}`"
        rows.append(f"| {_cell(shown)} | {_cell(_text_of(text))} |")
    return rows


def _text_of(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split())
    return ""


def _methods(tree: ast.ClassDef) -> list[str]:
    rows: list[str] = []
    seen: set[str] = set()
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or not _is_listed(node):
            continue
        if node.name in seen:
            continue
        seen.add(node.name)
        text = ast.get_docstring(node) or ""
        is_property = any(
            isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list
        )
        shown = f"`{node.name}`" if is_property else f"`{_signature(node.name, node)}`"
        rows.append(f"| {_cell(shown)} | {_cell(' '.join(text.split()))} |")
    return rows


def _is_listed(node: ast.stmt) -> bool:
    """Tell whether a method has a row."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    # `of` makes it from what engines return.
    hidden = node.name.startswith("_") or node.name.endswith("_sync") or node.name == "of"
    return not hidden and bool(ast.get_docstring(node))


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


def _prose(text: str | None) -> str:
    return (text or "").replace("``", "`").strip()


def main() -> int:
    """Write or check the page."""
    text = page()
    if missing := unexplained():
        told = "\n".join(f"{title} names {name}" for name, title in missing)
        sys.stderr.write(
            f"{PAGE.relative_to(ROOT)} does not explain:\n{told}\n"
            "hint: export the type from `lamplighter`, or name it in VALUES or INNER\n"
        )
        return 1
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(
        f"out of date: {PAGE.relative_to(ROOT)}\nhint: python tools/python_reference.py\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
