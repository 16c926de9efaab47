"""Which reader a text needs, and what no reader can take: binary, too large, not UTF-8."""

from __future__ import annotations

import re

from trimtab.engine.command import Arity, LaunchCommand, Reading, Source
from trimtab.engine.source import Layer, Problem, Span
from trimtab.messages import msg

LARGEST_BYTES = 1024 * 1024
"""Ten times the largest script seen; ruamel.yaml takes 8 s for as much YAML."""
BOM = b"\xef\xbb\xbf"
BY_SUFFIX = {
    ".sh": "shell", ".bash": "shell", ".zsh": "shell", ".yaml": "yaml", ".yml": "yaml", ".json": "yaml",
    ".service": "systemd", ".md": "markdown", ".markdown": "markdown", ".mdx": "markdown", ".dockerfile": "dockerfile",
    ".sbatch": "shell", ".slurm": "shell",
}  # fmt: skip
YAML_LINE = re.compile(rb"(?:%YAML|---\s|(?:- )?[\w./'\"-]+:(?:[ \t]|\r?\n|$)|\{)")
FIRST_LINE = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\n)*")


def read(text: str | bytes, filename: str | None, arity: Arity | None) -> Reading:
    """See command.read_commands."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    source = Source(data, filename)
    problem = unreadable(source)
    if problem:
        return Reading((), (problem,), source)
    root = Layer.root(data)
    if data.startswith(BOM):
        root = Layer(data[3:], range(3, len(data) + 1), root, Span(3, len(data)))
    commands, problems = read_as(kind_of(filename, root.data), source, root, arity)
    return Reading(tuple(commands), tuple(problems), source)


def kind_of(filename: str | None, data: bytes) -> str:
    """The kind of text by its file's name, else by its content."""
    name = (filename or "").rpartition("/")[2].lower()
    if re.match(r"(?:docker|container)file", name):
        return "dockerfile"
    if name == "makefile":
        return "shell"
    return BY_SUFFIX.get(name[name.rfind(".") :] if "." in name else "") or sniff(data)


def sniff(data: bytes) -> str:
    """The kind of a text by its content."""
    if re.search(rb"^[ \t]*(?:```|~~~)", data, re.MULTILINE):
        return "markdown"
    if re.search(rb"^\[(?:Service|Unit)\]|^ExecStart=", data, re.MULTILINE):
        return "systemd"
    if re.search(rb"^FROM[ \t]+\S", data, re.MULTILINE) and re.search(rb"^(?:CMD|ENTRYPOINT)[ \t]", data, re.MULTILINE):
        return "dockerfile"
    blank = FIRST_LINE.match(data)
    return "yaml" if YAML_LINE.match(data, blank.end() if blank else 0) and not data.startswith(b"#!") else "shell"


def read_as(kind: str, source: Source, layer: Layer, arity: Arity | None) -> tuple[list[LaunchCommand], list[Problem]]:
    """Read a text as a kind that `kind_of` names."""
    if kind == "yaml":
        from trimtab.engine.reading.manifest import read as reader
    elif kind == "markdown":
        from trimtab.engine.reading.markdown import read as reader
    elif kind == "dockerfile":
        from trimtab.engine.reading.dockerfile import read as reader
    elif kind == "systemd":
        from trimtab.engine.reading.systemd import read as reader
    else:
        from trimtab.engine.reading.shell import read as reader
    return reader(source, layer, arity)


def read_inside(layer: Layer, source: Source, arity: Arity | None) -> tuple[list[LaunchCommand], list[Problem]]:
    """Read a text that stands in another one (a heredoc, a string in YAML), by its content."""
    return read_as(sniff(layer.data), source, layer, arity)


def unreadable(source: Source) -> Problem | None:
    """Why the bytes cannot be taken as a text at all, None if they can."""
    data = source.data
    if len(data) > LARGEST_BYTES:
        size = msg("The text has {size:,} bytes; at most {most:,} are read.", size=len(data), most=LARGEST_BYTES)
        return Problem(size, Span(0, 0), 1, 1)
    nul = data.find(b"\0")
    if nul >= 0:
        return source.problem(msg("Byte {offset} is NUL: this is not a text file.", offset=nul), Span(nul, nul + 1))
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as e:
        bad = msg("Byte {offset} is 0x{byte:02X}, which is not UTF-8.", offset=e.start, byte=data[e.start])
        return source.problem(bad, Span(e.start, e.start + 1))
    return None
