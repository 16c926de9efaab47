"""Turns argparse actions into the plain records that a flag table holds."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]

GROUPS = {
    "ModelConfig": "model", "LoadConfig": "load", "ParallelConfig": "parallel", "CacheConfig": "cache",
    "SchedulerConfig": "scheduler", "LoRAConfig": "lora", "MultiModalConfig": "multimodal",
    "CompilationConfig": "compilation", "Frontend": "front end", "VllmConfig": "engine",
    "ObservabilityConfig": "observability", "SpeculativeConfig": "speculation", "OffloadConfig": "offload",
    "DecodingConfig": "structured output", "GuidedDecodingConfig": "structured output",
    "StructuredOutputsConfig": "structured output", "AttentionConfig": "attention", "KernelConfig": "kernel",
    "MambaConfig": "mamba", "DeviceConfig": "device", "PromptAdapterConfig": "prompt adapter",
    "TokenizerPoolConfig": "tokenizer pool", "LoggingConfig": "logging",
}  # fmt: skip
SIZES = ("human_readable_int", "human_readable_int_or_auto")


def record(action: argparse.Action, names: Iterable[str]) -> Record:
    """One flag: `names` are all spellings that the parser takes for it, hidden ones too."""
    long = [n for n in names if n.startswith("--")]
    wanted = "--" + action.dest.replace("_", "-")
    name = wanted if wanted in long else (long[0] if long else action.dest)
    negated = _negated(action, long)
    kind, nullable, config = _kind(action)
    made: Record = {
        "name": name,
        "kind": kind,
        "values": _values(action),
        "aliases": [n for n in names if n != name and n not in negated],
        "negations": negated,
        "dest": action.dest if wanted != name else None,
        "config": config.__name__ if config else None,
        "keys": keys_of(config),
        "nullable": nullable or None,
        "group": GROUPS.get(str(action.container.title)),  # type: ignore[attr-defined]
        "repeats": isinstance(action, argparse._AppendAction) or None,
        "required": (action.required and bool(action.option_strings)) or None,
    }
    made |= _choices(action)
    default = {} if action.default is None else {"default": plain(action.default)}
    return {k: v for k, v in made.items() if v is not None and v != [] and (k, v) != ("values", "1")} | default


def _negated(action: argparse.Action, names: list[str]) -> list[str]:
    hidden = getattr(action, "negative_option_strings", None)
    if hidden is not None:
        return [n for n in names if n in hidden]
    if isinstance(action, argparse.BooleanOptionalAction):
        return [n for n in names if n.startswith("--no-")]
    return []


def _values(action: argparse.Action) -> str:
    if action.nargs is None:
        return "1"
    return str(action.nargs)


def _kind(action: argparse.Action) -> tuple[str, bool, type | None]:
    """What a value is: switch, bool, int, float, str, size, json, json-or-str; if None may be; its config class."""
    if action.nargs == 0:
        return "switch", False, None
    if type(action).__name__ == "StoreBoolean":
        return "bool", False, None
    inner, nullable = _unwrapped(action.type)
    if type(action).__name__ in ("LoRAParserAction", "PromptAdapterParserAction"):
        return "name=path", nullable, None
    name = getattr(inner, "__qualname__", "str")
    config = next((v for v in getattr(inner, "__defaults__", None) or () if dataclasses.is_dataclass(v)), None)
    if name in ("int", "float", "bool"):
        return name, nullable, None
    if name in SIZES:
        return "size", nullable or name.endswith("auto"), None
    if name in ("loads", "nullable_kvs") or name.endswith((".parse_dataclass", ".from_cli", ".from_json")):
        owner = config or getattr(inner, "__self__", None)
        return "json", nullable, owner if dataclasses.is_dataclass(owner) else None  # type: ignore[return-value]
    if name.startswith("union_dict_and_str"):
        return "json-or-str", True, None
    return "str", nullable, None


def _unwrapped(function: Any) -> tuple[Any, bool]:
    """The function inside vLLM's `optional_type` and `parse_type`, and whether it takes None."""
    nullable = getattr(function, "__name__", "") == "nullable_str"
    while getattr(function, "__closure__", None) and "return_type" in function.__code__.co_freevars:
        nullable |= "optional_type" in function.__qualname__
        function = function.__closure__[function.__code__.co_freevars.index("return_type")].cell_contents
    return function, nullable


def keys_of(config: type | None) -> list[str]:
    """The keys that a config class takes; none for a class that is no dataclass."""
    return sorted(f.name for f in dataclasses.fields(config) if f.init) if dataclasses.is_dataclass(config) else []  # type: ignore[arg-type]


def _choices(action: argparse.Action) -> Record:
    if action.choices is not None:
        found, closed = list(action.choices), True
    elif isinstance(action.metavar, list | tuple) and action.type is not None:
        found, closed = list(action.metavar), False
    else:
        return {}
    made = {"choices": [plain(c) for c in found if c is not None]}
    return made if closed else made | {"open": True}


def plain(value: Any) -> Any:
    """A default as JSON: an enum's value, nothing for an object whose fields are its own business."""
    if isinstance(value, enum.Enum):
        return plain(value.value) if not isinstance(value.value, tuple | dict) else value.name
    if value is None or isinstance(value, bool | int | float | str):
        return None if value == argparse.SUPPRESS else value
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(str(plain(v)) for v in value)
    if isinstance(value, dict) and not dataclasses.is_dataclass(value):
        return {str(k): plain(v) for k, v in value.items()}
    return None


DEPRECATED = re.compile(r"^\W*deprecated|[(\[]deprecated|\bis\s+deprecated", re.I)
REMOVAL = re.compile(r"remov\w*\s+(?:in|from|by)\s+(?:vLLM\s+)?v?(\d+\.\d+)", re.I)
NO_OP = re.compile(r"no[- ]op\b|ha(?:s|ve) no effect|is ignored|does nothing", re.I)
DEAD = re.compile(r"has no effect, do not", re.I)


def status(text: str) -> Record:
    """What a help text or warning says of a flag's future; our words are elsewhere, the text is not kept."""
    made: Record = {}
    if DEPRECATED.search(text):
        made["deprecated"] = True
        if removal := REMOVAL.search(text):
            made["removal"] = removal.group(1)
    if (made and NO_OP.search(text)) or DEAD.search(text):
        made["no_op"] = True
    return made


def write(file: Path, table: Record) -> None:
    """One flag or variable a line, so that a diff of two tables reads as the change it is."""
    head = {k: v for k, v in table.items() if not isinstance(v, list)}
    parts = [json.dumps(head, ensure_ascii=False)[1:-1]]
    for key in (k for k, v in table.items() if isinstance(v, list)):
        lines = ",\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in table[key])
        parts.append(f'"{key}": [\n{lines}\n]')
    file.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")
