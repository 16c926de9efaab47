"""tree-sitter-bash, and texts made fit for it, each byte staying in its place."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

PLACEHOLDER = re.compile(
    rb"(?<![<\w])<(?=[A-Za-z0-9])[^<>\n|&;`'\"]*(?<![\s])>|(?<=[\w./:=-])<(?=[A-Za-z0-9])[\w ./-]*>"
)
PROMPT = re.compile(rb"^[ \t]*(?:\([\w.-]+\)[ \t]*)?(?:[\w.-]+@[\w.-]+[^\s$#]*)?\$ |^[ \t]*!(?=\w)", re.MULTILINE)
# A transcript: after a prompt's line that goes on, lines behind the shell's second prompt ("> --flag ...").
CONTINUED = re.compile(
    rb"^[ \t]*(?:[\w.-]+@[\w.-]+[^\s$#]*)?\$ [^\n]*\\\r?\n(?:[ \t]*>[ \t]+-[^\n]*(?:\n|\Z))+", re.MULTILINE
)
SECOND_PROMPT = re.compile(rb"^([ \t]*)>(?=[ \t]+-)", re.MULTILINE)
# PowerShell and cmd: a backtick or caret at the end of a line, with no other of its kind on the line.
FOREIGN_CONTINUATION = re.compile(rb"^([^\n`^]*[ \t])[`^](?=\r?\n)", re.MULTILINE)
LONE_OPERATOR = re.compile(rb"(?<=[ \t])(?:==|=~)(?=[ \t]*(?:[&|>;]|\\?\r?$))", re.MULTILINE)
# A comment amid a command, as `# this one`: a command that prints nothing.
INLINE_COMMENT = re.compile(rb"`#[^`\n]*`")
# https://github.com/tree-sitter/tree-sitter-bash/issues/337: the scanner of 0.25.1 looks a character there up in a
# table of bytes, and the process dies.
BRACE = re.compile(rb"(\{\d*(?:\.\.\d*)?)([\xc2-\xf4][\x80-\xbf]+)")


@cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse(data: bytes) -> Node:
    """The root of the text's tree. A node's own `text` may hold stand-ins; the bytes at its place are the text's."""
    safe = BRACE.sub(lambda m: m.group(1) + b"x" * len(m.group(2)), data) if b"{" in data else data
    return _parser().parse(safe).root_node


def masked(data: bytes) -> bytes:
    """The text with what is not shell made shell: `<model>`, prompts, other continuations."""
    data = PLACEHOLDER.sub(lambda m: b"x" * len(m.group()), data)
    data = CONTINUED.sub(lambda m: SECOND_PROMPT.sub(rb"\1 ", m.group()), data)
    data = PROMPT.sub(lambda m: b" " * len(m.group()), data)
    data = INLINE_COMMENT.sub(lambda m: b" " * len(m.group()), data)
    data = LONE_OPERATOR.sub(b"xx", data)
    return FOREIGN_CONTINUATION.sub(lambda m: m.group(1) + b"\\", data)
