"""The page that names every field of the configuration, made of the records."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec

from trimtab.gateway.config import (
    BackEndConfig,
    Bounds,
    Config,
    KeySource,
    ModelConfig,
    Price,
    TargetConfig,
    schema,
)

RECORDS: tuple[tuple[str, type[msgspec.Struct]], ...] = (
    ("The file", Config),
    ("`back_ends.NAME`", BackEndConfig),
    ("`back_ends.NAME.key`", KeySource),
    ("`back_ends.NAME.bounds`", Bounds),
    ("`models.NAME`", ModelConfig),
    ("`models.NAME.targets[]`", TargetConfig),
    ("`models.NAME.price`", Price),
)


def page() -> str:
    """Markdown: a table a record."""
    definitions = schema()["$defs"]
    lines = [
        "# Configuration of the gateway",
        "",
        "Every field of the file; durations are in seconds. Made by `scripts/docs`.",
    ]
    for title, record in RECORDS:
        lines += ["", f"## {title}", "", str(record.__doc__).strip(), ""]
        lines += ["| field | takes | default | what |", "| --- | --- | --- | --- |"]
        found = definitions[record.__name__]
        for name in get_type_hints(record):
            field = found["properties"][name]
            default = "required" if name in found.get("required", ()) else _default(field)
            lines.append(f"| `{name}` | {_type(field)} | {default} | {field.get('description', '')} |")
    return "\n".join(lines) + "\n"


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    return "" if value is None or isinstance(value, dict | list) else f"`{msgspec.json.encode(value).decode()}`"


def _type(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"] if option.get("type") != "null")
    if "$ref" in field:
        return "see below"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if field.get("type") == "object":
        return "names with entries, see below"
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true`, `false`"}
    least = " above 0" if field.get("exclusiveMinimum") == 0 else ""
    return words.get(str(field.get("type")), "") + least
