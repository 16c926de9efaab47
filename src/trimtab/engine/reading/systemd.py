"""Launches in systemd units: ExecStart with its continuation lines, and Environment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from trimtab.engine.command import Arity, EnvUse, Form, LaunchCommand, Source, Span
from trimtab.engine.reading import shell
from trimtab.engine.reading.containers import expanded
from trimtab.engine.reading.shellwords import Variables
from trimtab.engine.source import Layer, Problem, Word

SETTING = re.compile(rb"[ \t]*(\w+)[ \t]*=[ \t]*")
COMMENT = re.compile(rb"[ \t]*[#;]")
# systemd.service(5): prefixes of the executable's path.
PREFIX = re.compile(rb"[@\-:+!|]+")
# systemd.unit(5): specifiers, of which only %% is known here.
SPECIFIER = re.compile(r"%(%|[A-Za-z])")
# systemd.service(5): $$ is a dollar sign.
DOLLAR = re.compile(rb"\$\$")


def read(source: Source, layer: Layer, arity: Arity | None = None) -> tuple[list[LaunchCommand], list[Problem]]:
    """Launches in a unit file."""
    state = shell.State(source, arity, Form.SYSTEMD)
    settings = list(_settings(layer))
    for name, body in settings:
        if name == "Environment":
            for word in shell.split_words(body, state):
                word = _specified(word)
                key, _, value = word.text.partition("=")
                span = word.source_span()
                state.exported[key] = EnvUse(key, value, span, span, not word.known)
    state.seed(dict(state.exported))
    for name, body in settings:
        if name.startswith("Exec") and b"vllm" in body.data:
            _command(body, state)
    return state.commands, state.problems


def _settings(layer: Layer) -> Iterator[tuple[str, Layer]]:
    """Each setting's name and value; a backslash at the end of a line is a blank, comment lines inside are dropped."""
    name, kept = "", bytearray()
    at: list[int] = []
    for line in re.finditer(rb"[^\n]*\n|[^\n]+", layer.data):
        text, start = line.group(), line.start()
        if COMMENT.match(text):
            continue
        if not name:
            found = SETTING.match(text)
            if not found:
                continue
            name, start = found.group(1).decode(), start + found.end()
        kept += layer.data[start : line.end()]
        at += range(start, line.end())
        if text.rstrip(b"\r\n").endswith(b"\\"):
            continue
        yield name, _part(bytes(kept), at, layer)
        name, kept, at = "", bytearray(), []
    if name:
        yield name, _part(bytes(kept), at, layer)


def _part(data: bytes, at: list[int], layer: Layer) -> Layer:
    data = data.rstrip()
    prefix = PREFIX.match(data)
    skip = prefix.end() if prefix else 0
    data, at = data[skip:], at[skip : len(data)]
    end = at[-1] + 1 if at else 0
    return Layer(data, [*at, end], layer, Span(at[0] if at else 0, end))


def _command(body: Layer, state: shell.State) -> None:
    literal = replace(body, data=DOLLAR.sub(rb"\\$", body.data))
    words = [_specified(w) for w in shell.split_words(literal, state, Variables(state.scalars, {}, state.growth))]
    span = body.root_span(Span(0, len(body.data)))
    if words:
        shell.run(words, dict(state.exported), span, state)


def _specified(word: Word) -> Word:
    return expanded(word, SPECIFIER, lambda found: "%" if found.group(1) == "%" else None)
