"""Writes the types of the web console from what the service declares.

Usage: python tools/console_types.py           write console/src/api/schema.ts
       python tools/console_types.py --check   fail if it is not up to date
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from lamplighter.server import openapi
from lamplighter.server.routes import TABLE

FILE = Path(__file__).resolve().parent.parent / "console" / "src" / "api" / "schema.ts"
HEAD = "// Written by tools/console_types.py from the service's description. Not edited by hand.\n"

_PLAIN = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def type_of(schema: dict[str, Any]) -> str:
    """Write one schema as a type."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    either = schema.get("anyOf") or schema.get("oneOf")
    if either:
        return " | ".join(dict.fromkeys(type_of(each) for each in either))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(type_of({**schema, "type": each}) for each in kind)
    if kind == "array":
        inner = type_of(schema.get("items") or {})
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if kind == "object":
        return _object(schema)
    return _PLAIN.get(str(kind), "unknown")


def _object(schema: dict[str, Any]) -> str:
    fields = schema.get("properties")
    if not fields:
        more = schema.get("additionalProperties")
        return f"Record<string, {type_of(more) if isinstance(more, dict) else 'unknown'}>"
    required = set(schema.get("required", ()))
    lines = [_field(name, of, optional=name not in required) for name, of in fields.items()]
    return "{\n" + "".join(lines) + "}"


def _field(name: str, schema: dict[str, Any], *, optional: bool) -> str:
    said = schema.get("description")
    comment = f"  /** {' '.join(str(said).split())} */\n" if said else ""
    key = name if _WORD.fullmatch(name) else json.dumps(name)
    return f"{comment}  {key}{'?' if optional else ''}: {type_of(schema)};\n"


def written() -> str:
    """Write all schemas of the description."""
    schemas = openapi.document(TABLE)["components"]["schemas"]
    parts = [HEAD]
    for name, schema in sorted(schemas.items()):
        said = schema.get("description")
        comment = f"/** {' '.join(str(said).split())} */\n" if said else ""
        parts.append(f"{comment}export type {name} = {type_of(schema)};\n")
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Write the file, or compare it."""
    text = written()
    if arguments[:1] != ["--check"]:
        FILE.write_text(text, encoding="utf-8")
        return 0
    if FILE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"error: {FILE.name} does not fit what the service declares\n")
    sys.stderr.write("hint: run `make console`, and see what the console has to learn\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
