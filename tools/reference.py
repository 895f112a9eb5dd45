"""Writes the reference pages that can be read off the code: settings, events, metrics, engines.

`python tools/reference.py` writes them, `--check` fails when they differ from the code.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from pathlib import Path

from lamplighter.config import PREFIX, Settings
from lamplighter.observability.events import EVENTS
from lamplighter.observability.metrics import METRICS, Metric
from lamplighter.port.capabilities import Capabilities

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"


def field_docs(cls: type) -> dict[str, str]:
    """Read the text that stands below each field of a class."""
    body = ast.parse(inspect.getsource(cls)).body[0]
    if not isinstance(body, ast.ClassDef):
        raise TypeError(cls)
    docs: dict[str, str] = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            docs[field.target.id] = " ".join(str(text.value.value).split())
    return docs


def settings_page() -> str:
    """Table of all settings."""
    docs = field_docs(Settings)
    rows = [
        f"| `{field.name}` | `{PREFIX}{field.name.upper()}` | `{field.default}` "
        f"| {docs[field.name]} |"
        for field in dataclasses.fields(Settings)
    ]
    return "\n".join(
        [
            "# Settings",
            "",
            (
                "Read from `lamplighter.toml` in the working folder (or the file that "
                "`LAMPLIGHTER_CONFIG` names), then from the environment, then from arguments; the "
                "later wins. Times are in seconds. `LAMPLIGHTER_URL_FILE` names a file that holds "
                "the url, for secrets."
            ),
            "",
            "| setting | environment | default | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
        ],
    )


def events_page() -> str:
    """Table of all events."""
    rows = [f"| `{name}` | {text} |" for name, text in EVENTS.items()]
    return "\n".join(
        [
            "# Events",
            "",
            (
                "`lamplighter.observability.events.listen(listener)` calls "
                "`listener(name, fields)` for each."
            ),
            "",
            "| event | when, and its fields |",
            "|---|---|",
            *rows,
            "",
        ],
    )


def metrics_page() -> str:
    """Table of all metrics."""
    return "\n".join(
        [
            "# Metrics",
            "",
            (
                "Told at `/metrics` of `lamplighter serve`, and of `lamplighter worker` with "
                "`--metrics-port`, in the text format of Prometheus. Times are in seconds. At most "
                "`metrics_names` (see [settings](settings.md)) queues, and as many job types, are "
                "told apart; the rest is called `other`. Tenants are in no metric. The guide is "
                "[observability](../guides/observability.md)."
            ),
            "",
            "| metric | kind | labels | told by | meaning |",
            "|---|---|---|---|---|",
            *map(metric_row, METRICS),
            "",
        ],
    )


def metric_row(metric: Metric) -> str:
    """Line of one metric."""
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    kind = metric.kind.value
    if metric.bounds:
        kind += f" up to {metric.bounds[0]:g} … {metric.bounds[-1]:g}"
    return f"| `{metric.name}` | {kind} | {labels} | {metric.source.value} | {metric.help} |"


def engines_page() -> str:
    """Table of the engines' capabilities, one column per engine."""
    from lamplighter.engines.postgres.driver import CAPABILITIES as POSTGRES  # noqa: PLC0415
    from lamplighter.engines.redis.promises import CAPABILITIES as REDIS  # noqa: PLC0415
    from lamplighter.engines.sqlite.driver import CAPABILITIES as SQLITE  # noqa: PLC0415

    engines = (SQLITE, POSTGRES, REDIS)
    docs = field_docs(Capabilities)
    rows = [
        f"| {docs.get(field.name, field.name)} | {' | '.join(shown)} |"
        for field in dataclasses.fields(Capabilities)
        if field.name != "name"
        for shown in [[in_words(getattr(one, field.name)) for one in engines]]
    ]
    return "\n".join(
        [
            "# Engines",
            "",
            (
                "What is not named here is the same on every engine, and the conformance suite "
                "proves it. `lamplighter doctor` says what holds for the store in use."
            ),
            "",
            f"| | {' | '.join(one.name for one in engines)} |",
            f"|---{'|---' * len(engines)}|",
            *rows,
            "",
        ],
    )


def in_words(value: object) -> str:
    """Write a value as people do."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


PAGES = {
    "settings.md": settings_page,
    "events.md": events_page,
    "metrics.md": metrics_page,
    "engines.md": engines_page,
}


def main() -> int:
    """Write or check all pages."""
    check = "--check" in sys.argv[1:]
    stale: list[str] = []
    for name, page in PAGES.items():
        path = FOLDER / name
        text = page()
        if check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(str(path.relative_to(ROOT)))
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.stderr.write(f"out of date: {', '.join(stale)}\nhint: python tools/reference.py\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
