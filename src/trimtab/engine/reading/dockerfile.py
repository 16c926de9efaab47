"""Launches in Dockerfiles: the ENTRYPOINT and CMD of each stage, with its image and ENV."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import accumulate

import msgspec

from trimtab.engine.command import Arity, Container, EnvUse, Form, LaunchCommand, Source, Span, Value
from trimtab.engine.reading import shell
from trimtab.engine.reading.containers import Box
from trimtab.engine.source import Item, Layer, Listing, Problem, Word
from trimtab.messages import msg

INSTRUCTION = re.compile(rb"[ \t]*([A-Za-z]+)[ \t]+")
COMMENT = re.compile(rb"[ \t]*#")
HEREDOC = re.compile(rb"<<-?[\"']?(\w+)")
FLAG = re.compile(rb"(?:^|[\s\"'\[,])--\w")
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
ASSIGNED = re.compile(r"""([A-Za-z_]\w*)=("(?:[^"\\]|\\.)*"|'[^']*'|(?:\\.|[^\s"'])*)""")
ESCAPE = re.compile(rb"#[ \t]*escape[ \t]*=[ \t]*`", re.IGNORECASE)


class Stage(msgspec.Struct):
    """One FROM with what follows it."""

    image: Word | None
    env: dict[str, EnvUse] = msgspec.field(default_factory=dict)
    entry: Layer | None = None
    cmd: Layer | None = None


def read(source: Source, layer: Layer, arity: Arity | None = None) -> tuple[list[LaunchCommand], list[Problem]]:
    """Launches in a Dockerfile, one a stage at most."""
    state = shell.State(source, arity, Form.DOCKERFILE)
    stage = Stage(None)
    for name, body in instructions(layer):
        if name == "FROM":
            _finish(stage, state)
            stage = Stage(_image(body), dict(stage.env) if stage.image is None else {})
        elif name in ("ENV", "ARG"):
            _set(stage, body)
        elif name == "ENTRYPOINT":
            stage.entry, stage.cmd = body, None
        elif name == "CMD":
            stage.cmd = body
    _finish(stage, state)
    return state.commands, state.problems


def instructions(layer: Layer) -> Iterator[tuple[str, Layer]]:
    """Each instruction's name and its text, comment lines inside it left out."""
    data = layer.data
    mark = b"`" if ESCAPE.match(data.removeprefix(b"\xef\xbb\xbf")) else b"\\"
    until: bytes | None = None
    name, kept = b"", bytearray()
    at: list[int] = []
    for line in re.finditer(rb"[^\n]*\n|[^\n]+", data):
        text = line.group()
        if until is not None:
            until = None if text.strip() == until else until
            continue
        start = line.start()
        if not name:
            found = INSTRUCTION.match(text)
            if COMMENT.match(text) or not found:
                continue
            name, start = found.group(1).upper(), start + found.end()
        elif COMMENT.match(text):
            continue
        kept += data[start : line.end()]
        at += range(start, line.end())
        if text.rstrip().endswith(mark):
            continue
        yield name.decode(), _part(bytes(kept), at, layer)
        heredoc = HEREDOC.search(kept) if name in (b"RUN", b"COPY") else None
        until = heredoc.group(1) if heredoc else None
        name, kept, at = b"", bytearray(), []
    if name:
        yield name.decode(), _part(bytes(kept), at, layer)


def _part(data: bytes, at: list[int], layer: Layer) -> Layer:
    stripped = data.rstrip()
    end = at[len(stripped) - 1] + 1 if stripped else (at[0] if at else 0)
    return Layer(stripped, [*at[: len(stripped)], end], layer, Span(at[0] if at else 0, end))


def _image(body: Layer) -> Word | None:
    found = re.match(rb"(?:--\S+\s+)*(\S+)", body.data)
    if not found:
        return None
    text = found.group(1).decode("utf-8", "replace")
    start = found.start(1)
    return Word(text, range(start, start + len(text) + 1), Span(*found.span(1)), body, "$" not in text)


def _set(stage: Stage, body: Layer) -> None:
    text = body.data.decode("utf-8", "replace")
    offsets = list(accumulate((len(char.encode()) for char in text), initial=0))
    found = list(ASSIGNED.finditer(text)) or list(re.finditer(r"^(\w+)\s+(.+)$", text, re.DOTALL))
    for match in found:
        span = body.root_span(Span(offsets[match.start()], offsets[match.end()]))
        value = match.group(2)
        if value[:1] in ("'", '"') and value[-1:] == value[:1]:
            value = value[1:-1]
        stage.env[match.group(1)] = EnvUse(match.group(1), value, span, span, "$" in value)


def _finish(stage: Stage, state: shell.State) -> None:
    found = len(state.commands)
    for shell_form in (stage.entry, stage.cmd if stage.entry is None else None):
        if shell_form is not None and _listed(shell_form) is None:
            _read_shell(shell_form, stage, state)
            if stage.entry is None and len(state.commands) == found:
                _report_shell_form(stage, state)
            return
    _report_shell_form(stage, state)
    entry = _listed(stage.entry) if stage.entry else None
    args = (_listed(stage.cmd) if stage.cmd else None) or []
    last = stage.cmd or stage.entry
    if last is None:
        return
    image = stage.image
    facts = Container(image=Value(image.text, image.source_span(), not image.known) if image else None)
    first = stage.entry or last
    span = Span(first.root_span(Span(0, len(first.data))).start, last.root_span(Span(0, len(last.data))).end)
    shell.read_box(Box(Form.DOCKERFILE, span, facts, entry, args, stage.env, image), state)


def _report_shell_form(stage: Stage, state: shell.State) -> None:
    """Arguments for vLLM that Docker hands to a shell instead: CMD is no JSON list."""
    body, image = stage.cmd, stage.image
    starts_vllm = b"vllm" in stage.entry.data if stage.entry else image is not None and "vllm-openai" in image.text
    if body is None or not starts_vllm or _listed(body) is not None or not FLAG.search(body.data):
        return
    what = msg("CMD is no JSON list of strings, so the entry point gets /bin/sh -c and one text, not these arguments.")
    state.problems.append(state.source.problem(what, body.root_span(Span(0, len(body.data)))))


def _read_shell(body: Layer, stage: Stage, state: shell.State) -> None:
    inner = shell.State(state.source, state.arity, Form.DOCKERFILE)
    inner.growth, inner.launches = state.growth, state.launches
    image = stage.image
    inner.container = Container(image=Value(image.text, image.source_span(), not image.known)) if image else None
    inner.seed(stage.env)
    shell.read_layer(body, inner)
    state.commands += inner.commands
    state.problems += inner.problems


def _listed(body: Layer) -> list[Word] | None:
    """The words of the JSON form, None where it is the shell form."""
    data = re.sub(rb"[\\`][ \t]*(\r?\n)", lambda m: b" " * len(m.group()), body.data)
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        return None
    spans = tuple(Span(*m.span()) for m in STRING.finditer(data))
    lead = ", "
    if len(spans) > 1:
        lead = body.data[spans[-2].end : spans[-1].start].decode("utf-8", "replace")
    listing = Listing(body, spans, lead, json.dumps, flow=True)
    return [_word(v, s, body, Item(listing, i)) for i, (v, s) in enumerate(zip(values, spans, strict=True))]


def _word(value: str, span: Span, body: Layer, item: Item) -> Word:
    """A JSON string as a text of its own."""
    raw = body.data[span.start + 1 : span.end - 1].decode("utf-8", "surrogateescape")
    data = value.encode("utf-8", "surrogatepass")
    inside = Span(span.start + 1, span.end - 1)
    at = list(range(inside.start, inside.end + 1)) if raw == value else [inside.start] * len(data) + [inside.end]
    whole = raw == value
    layer = Layer(data, at, body, span, lambda t, s: json.dumps(t)[1:-1] if whole else None, json.dumps)
    text = data.decode("utf-8", "replace")
    offsets = accumulate((len(char.encode()) for char in text), initial=0)
    return Word(text, list(offsets), Span(0, len(data)), layer, item=item)
