"""Checks the pinned requirements and writes the list of what is in a release (SBOM).

Usage: python tools/supply.py             fail if a pin lacks hashes, names a host, or does not
                                          cover what the package imports and declares
       python tools/supply.py --sbom FILE write a CycloneDX list of the runtime requirements
"""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = (
    "core",
    "build",
    "server",
    "dev",
    "hostile",
    "clients",
    "peers",
    "peers-arq",
    "peers-taskiq",
)
ALLOWED_IN = {
    "pytest": ("port/conformance", "testing"),
    "pytest_asyncio": ("port/conformance", "testing"),
    "hypothesis": ("port/conformance",),
    "psycopg": ("engines/postgres",),
    "cryptography": ("server",),
    "hiredis": ("engines/redis",),
    "httptools": ("server",),
    "httpx2": ("http",),
    "jsonschema_rs": ("server",),
    "jwt": ("server",),
    "starlette": ("server",),
    "uvicorn": ("server",),
    "uvloop": ("server",),
}
"""Libraries that are not required at run time: for tests that are shipped, and for extras."""
DATA = frozenset({"tzdata"})
"""Packages whose files are read, and which nobody imports."""

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:(?P<digest>[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Pin:
    """One pinned package."""

    name: str
    version: str
    hashes: tuple[str, ...]


def read_lock(text: str) -> list[Pin]:
    """Read the pins of a compiled requirements file."""
    pins: list[Pin] = []
    for entry in re.split(r"\n(?=[A-Za-z0-9])", text):
        found = _PIN.match(entry.strip())
        if found is not None:
            digests = tuple(match["digest"] for match in _HASH.finditer(entry))
            pins.append(Pin(found["name"].lower(), found["version"], digests))
    return pins


def lock_problems(name: str, text: str) -> list[str]:
    """Say what is wrong with one lock file."""
    problems = [f"{name}: `{pin.name}` has no hash" for pin in read_lock(text) if not pin.hashes]
    if not read_lock(text):
        problems.append(f"{name}: no pins")
    if re.search(r"https?://|--(?:extra-)?index-url|--find-links", text):
        problems.append(f"{name}: names a host")
    return problems


def imported(source: Path) -> dict[str, set[str]]:
    """Give the top-level packages a tree imports, each with the files that do."""
    found: dict[str, set[str]] = {}
    for path in source.rglob("*.py"):
        where = str(path.relative_to(source))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: Iterable[str] = ()
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                found.setdefault(name.split(".")[0], set()).add(where)
    return found


def import_problems(imports: dict[str, set[str]], declared: set[str]) -> list[str]:
    """Say which imports nobody declared, and which declarations nobody imports."""
    known = set(sys.stdlib_module_names) | {"lamplighter"} | declared
    problems: list[str] = []
    for name, files in sorted(imports.items()):
        allowed = ALLOWED_IN.get(name, ())
        wild = sorted(f for f in files if not f.startswith(allowed)) if allowed else sorted(files)
        if name not in known and wild:
            problems.append(f"`{name}` is imported by {wild[0]} but not declared in pyproject.toml")
    unused = declared - imports.keys() - DATA
    problems += [f"`{name}` is declared but never imported" for name in unused]
    return problems


def declared_names() -> set[str]:
    """Give the runtime requirements of pyproject.toml, as they are imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        re.split(r"[^A-Za-z0-9_-]", line)[0].replace("-", "_") for line in project["dependencies"]
    }


def problems() -> list[str]:
    """Check everything."""
    found: list[str] = []
    for name in LOCKS:
        path = ROOT / "requirements" / f"{name}.txt"
        found += lock_problems(path.name, path.read_text(encoding="utf-8"))
    core = read_lock((ROOT / "requirements" / "core.txt").read_text(encoding="utf-8"))
    pinned = {pin.name.replace("-", "_") for pin in core}
    declared = declared_names()
    found += [f"`{name}` is declared but not pinned in core.txt" for name in declared - pinned]
    return found + import_problems(imported(ROOT / "src" / "lamplighter"), declared)


def sbom() -> str:
    """Write the runtime requirements as a CycloneDX document."""
    pins = read_lock((ROOT / "requirements" / "core.txt").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [
            {
                "type": "library",
                "name": pin.name,
                "version": pin.version,
                "purl": f"pkg:pypi/{pin.name}@{pin.version}",
                "hashes": [{"alg": "SHA-256", "content": digest} for digest in pin.hashes],
            }
            for pin in pins
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def main(arguments: list[str]) -> int:
    """Check, or write the list."""
    if arguments[:1] == ["--sbom"]:
        Path(arguments[1]).write_text(sbom(), encoding="utf-8")
        return 0
    found = problems()
    for problem in found:
        sys.stderr.write(f"error: {problem}\n")
    if found:
        sys.stderr.write("hint: edit requirements/*.in and pyproject.toml, then run `make lock`\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
