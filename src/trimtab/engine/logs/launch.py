"""The launch as its own log tells it: flags, the engine's configuration, version, devices, memory. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from trimtab.engine.logs.log import LogFacts

_VERSION = re.compile(
    r"(?:vLLM API server version:? |LLM engine \(v|vLLM version[: ]+|vLLM is version |version +)(\d+\.\d+[\w.+]*)"
)
_ARGS = re.compile(r"non-default args: (\{.*)")
_NAMESPACE = re.compile(r"args: Namespace\((.*)\)")
_PAIR = re.compile(
    r"'?(\w+)'?[:=] ?("
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])|True|False|None|\[[^\[\]]*\]|\{[^{}]*\})"
)
_ENGINE = re.compile(r"LLM engine \(v[^)]*\) with config: (.*)")
_ENGINE_PAIR = re.compile(r"(\w+)=('[^']*'|\"[^\"]*\"|[^,()\[\]{}' ]+)(?=,|$|\)| )")
_SIMPLE = (
    ("architecture", re.compile(r"Resolved architecture: (\w+)|resolved to architectures: \['(\w+)'")),
    ("device", re.compile(r"Your (.{3,60}?) GPU (?:only )?(?:has|have|with) |[Nn]ame of device: (.+)")),
)
_N = r"(-?[\d,]+(?:\.\d+)?)"
_NUMBERS = tuple(
    (re.compile(pattern.replace("<>", _N)), names)
    for pattern, names in (
        (r"total_gpu_memory=<>GiB", ("total_gib",)),
        (r"total_memory=<>GiB", ("total_gib",)),
        (r"kv_cache_size=<>GiB", ("kv_gib",)),
        (r"[Ff]ree memory on device(?: \S+)? \(<>/<> GiB\)", ("free_gib", "total_gib")),
        (r"current vLLM instance can use total_gpu_memory \(<>GiB\)", ("total_gib",)),
        (r"has a total capac\w+ of <> GiB of which", ("total_gib",)),
        (r"GPU \d+; <> GiB total capacity", ("total_gib",)),
        (r"[Uu]sing max model len <>", ("context_tokens",)),
    )
)


class LaunchReader:
    """Takes the texts of a start's lines, one by one; `facts` is what they told so far."""

    def __init__(self) -> None:
        self.version: str | None = None
        self.args: dict[str, object] = {}
        self.all_args = False
        self.engine: dict[str, str] = {}
        self.words: dict[str, str] = {}
        self.numbers: dict[str, float] = {}

    def take(self, text: str) -> None:
        """Read one line's text (after the logger's prefix)."""
        if "ersion" in text and (found := _VERSION.search(text)):
            self.version = self.version or found[1]
        if " args: " in text or text.startswith("args: "):
            self._flags(text)
        if "LLM engine (v" in text and (config := _ENGINE.search(text)):
            self.engine = {k: v.strip("'\"") for k, v in _ENGINE_PAIR.findall(config[1])}
            version = _VERSION.search(text)
            self.version = version[1] if version else self.version
        for name, pattern in _SIMPLE:
            if name not in self.words and (found := pattern.search(text)):
                self.words[name] = found[1] or found[2]
        if "GiB" in text or "max model len" in text:
            self.sizes(text)

    def sizes(self, text: str) -> None:
        """Read the memory that a line tells, be it an error's."""
        for pattern, names in _NUMBERS:
            if found := pattern.search(text):
                for name, value in zip(names, found.groups(), strict=True):
                    self.numbers[name] = float(value.replace(",", ""))

    def _flags(self, text: str) -> None:
        if found := _ARGS.search(text):
            self.args, self.all_args = _literal(found[1]), False
        elif found := _NAMESPACE.search(text):
            self.args, self.all_args = _pairs(found[1]), True

    def facts(self, make: Callable[..., LogFacts]) -> LogFacts:
        """`make` called with what the start told about itself."""
        return make(
            version=self.version,
            args=self.args,
            all_args=self.all_args,
            engine=self.engine,
            architecture=self.words.get("architecture"),
            device=self.words.get("device"),
            numbers=self.numbers,
        )


def _literal(text: str) -> dict[str, object]:
    """A dictionary as Python prints it; where it holds objects, its plain pairs."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return _pairs(text)
    return {str(k): v for k, v in found.items()} if isinstance(found, dict) else {}


def _pairs(text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in _PAIR.findall(text):
        try:
            found.setdefault(name, ast.literal_eval(value))
        except (ValueError, SyntaxError):
            continue
    return found
