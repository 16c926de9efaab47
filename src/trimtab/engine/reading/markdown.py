"""Launches in the code blocks of Markdown, by markdown-it; a block's language says how it is read."""

from __future__ import annotations

import re
from itertools import accumulate

from trimtab.engine.command import Arity, LaunchCommand, Source
from trimtab.engine.source import Layer, Problem, Span

SHELL = {"", "bash", "sh", "shell", "zsh", "console", "shell-session", "sh-session", "terminal", "text", "txt", "cmd",
         "commandline", "command", "bash-session", "plaintext", "fish", "none"}  # fmt: skip
KINDS = {"yaml": "yaml", "yml": "yaml", "dockerfile": "dockerfile", "docker": "dockerfile", "ini": "systemd",
         "systemd": "systemd", "service": "systemd", "docker-compose": "yaml"}  # fmt: skip


# Tabs and admonitions of MkDocs, whose content is indented by four as a list item's is.
CONTAINER = re.compile(r"^([ \t]*)(?:===|!!!|\?\?\?\+?)[ \t]+(\S.*)$", re.MULTILINE)


def read(source: Source, layer: Layer, arity: Arity | None = None) -> tuple[list[LaunchCommand], list[Problem]]:
    """Launches in every code block; what one shell block sets is known in those after it."""
    from trimtab.engine.reading import dispatch, shell

    state = shell.State(source, arity)
    for language, block in blocks(layer):
        kind = "shell" if language in SHELL else KINDS.get(language)
        if language in ("", "text", "txt", "plaintext", "none"):
            kind = dispatch.sniff(block.data)
        if kind is None or (b"vllm" not in block.data and kind != "shell"):
            continue
        if kind == "shell":
            shell.read_layer(block, state)
        else:
            commands, problems = dispatch.read_as(kind, source, block, arity)
            state.commands += commands
            state.problems += problems
    return state.commands, state.problems


def blocks(layer: Layer) -> list[tuple[str, Layer]]:
    """Language and text of each code block, in order."""
    from markdown_it import MarkdownIt

    text = layer.data.decode("utf-8", "surrogateescape")
    lines = _lines(text)
    found: list[tuple[str, Layer]] = []
    as_lists = CONTAINER.sub(lambda m: f"{m.group(1)}-   ".ljust(len(m.group()), "x")[: len(m.group())], text)
    for token in MarkdownIt("commonmark").parse(as_lists):
        if token.type not in ("fence", "code_block") or token.map is None:
            continue
        first = token.map[0] + (1 if token.type == "fence" else 0)
        block = _block(token.content, first, lines, layer)
        if block is not None:
            words = re.findall(r"[\w+-]+", token.info)
            found.append((words[0].lower() if words else "", block))
    return found


def _lines(text: str) -> list[tuple[int, str]]:
    """Each line with the byte at which it begins."""
    pieces = re.findall(r"[^\r\n]*(?:\r\n|\n|\r|$)", text)
    starts = accumulate((len(piece.encode("utf-8", "surrogateescape")) for piece in pieces), initial=0)
    return [(start, piece.rstrip("\r\n")) for start, piece in zip(starts, pieces, strict=False)]


def _block(content: str, first: int, lines: list[tuple[int, str]], layer: Layer) -> Layer | None:
    """The block as a text of its own; None where its lines cannot be found again (tabs turned into blanks)."""
    at: list[int] = []
    offset = 0
    for number, line in enumerate(re.findall(r"[^\n]*\n|[^\n]+", content), first):
        if number >= len(lines):
            return None
        start, raw = lines[number]
        body = line.rstrip("\r\n")
        if not raw.endswith(body):
            return None
        offset = start + len(raw[: len(raw) - len(body)].encode("utf-8", "surrogateescape"))
        for char in line:
            size = len(char.encode("utf-8", "surrogateescape"))
            at += range(offset, offset + size)
            offset += size
    data = content.encode("utf-8", "surrogateescape")
    if len(at) != len(data):
        return None
    indent = re.match(r"[ \t>]*", lines[first][1]) if first < len(lines) else None
    prefix = indent.group() if indent and not content.startswith(indent.group()) else ""
    end = offset if at else 0
    return Layer(data, [*at, end], layer, Span(at[0] if at else 0, end), lambda t, s: t.replace("\n", "\n" + prefix))
