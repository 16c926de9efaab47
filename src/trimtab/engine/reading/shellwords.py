"""Values of shell words from tree-sitter nodes: quotes taken off, the file's own variables put in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from trimtab.engine.reading.limits import Allowance
from trimtab.engine.source import Layer, Span, Word

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST_VALUE = 100_000
DEEPEST = 20
ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
ELISION = ("...", "…")
STAND_IN = re.compile(r"<[A-Za-z0-9][^<>\n]*>")
"""What people write where a reader puts their own value: `<model>`, `sk-<key>`."""


class Pieces(msgspec.Struct):
    """A word while it is put together."""

    text: list[str] = msgspec.field(default_factory=list)
    at: list[int] = msgspec.field(default_factory=list)
    known: bool = True
    size: int = 0

    def put(self, text: str, offset: int) -> None:
        """Characters that stand at `offset` as they are."""
        for char in text:
            self.at.append(offset)
            offset += len(char.encode("utf-8", "surrogateescape"))
        self.text.append(text)
        self.size += len(text)

    def put_one(self, text: str, offset: int) -> None:
        """Characters that are all written at one place."""
        if self.size + len(text) > LONGEST_VALUE:
            self.known = False
            return
        self.at += [offset] * len(text)
        self.text.append(text)
        self.size += len(text)


class Variables(msgspec.Struct, frozen=True):
    """What the file itself sets; a value that it computes is there as a Word that is not known."""

    scalars: Mapping[str, Word]
    arrays: Mapping[str, tuple[Word, ...]]
    allowance: Allowance = msgspec.field(default_factory=Allowance)


def words_of(node: Node, layer: Layer, variables: Variables) -> list[Word]:
    """The words that one argument becomes: one, or more where an array or an unquoted list stands for it."""
    array = _array(node, variables)
    if array is not None and variables.allowance.take(len(array)):
        return list(array)
    if node.type in ("simple_expansion", "expansion"):
        value = _allowed(node, variables)
        if value is not None and value.known and re.search(r"\s", value.text):
            return split(value, Span(node.start_byte, node.end_byte))
        if value is not None and value.known and not value.text:
            return []
    return [word_of(node, layer, variables)]


def word_of(node: Node, layer: Layer, variables: Variables) -> Word:
    """The value of one node as a single word."""
    pieces = Pieces()
    _read(node, layer, variables, pieces, 0)
    text = "".join(pieces.text)
    known = pieces.known and text not in ELISION and not STAND_IN.search(text)
    return Word(text, [*pieces.at, node.end_byte], Span(node.start_byte, node.end_byte), layer, known)


def split(value: Word, via: Span | None = None) -> list[Word]:
    """An unquoted variable's value as the words it becomes, each where it is written; `via` is where it is used."""
    words: list[Word] = []
    for m in re.finditer(r"\S+", value.text):
        span = Span(value.at[m.start()], value.at[m.end() - 1] + 1)
        words.append(Word(m.group(), value.at[m.start() : m.end() + 1], span, value.layer, via=via))
    return words


def _array(node: Node, variables: Variables) -> tuple[Word, ...] | None:
    if node.type == "string" and node.named_child_count == 1 and node.named_children[0].type == "expansion":
        node = node.named_children[0]
    if node.type != "expansion" or node.text is None:
        return None
    found = re.fullmatch(rb"\$\{(\w+)\[[@*]\]\}", node.text)
    return variables.arrays.get(found.group(1).decode()) if found else None


def _read(node: Node, layer: Layer, variables: Variables, pieces: Pieces, depth: int) -> None:
    kind = node.type
    if kind == "raw_string":
        pieces.put(_slice(layer, node.start_byte + 1, node.end_byte - 1), node.start_byte + 1)
    elif kind == "ansi_c_string":
        _ansi(layer, node, pieces)
    elif kind in ("simple_expansion", "expansion"):
        value = _allowed(node, variables)
        if value is None or not value.known:
            pieces.known = False
            pieces.put(_slice(layer, node.start_byte, node.end_byte), node.start_byte)
        else:
            pieces.put_one(value.text, node.start_byte)
    elif kind in ("command_substitution", "process_substitution", "arithmetic_expansion"):
        pieces.known = False
        pieces.put(_slice(layer, node.start_byte, node.end_byte), node.start_byte)
    elif kind in ("string", "translated_string", "concatenation", "command_name") and depth < DEEPEST:
        _read_parts(node, layer, variables, pieces, depth)
    else:
        _unescape(layer, node.start_byte, node.end_byte, pieces, quoted=kind == "string_content")


def _read_parts(node: Node, layer: Layer, variables: Variables, pieces: Pieces, depth: int) -> None:
    quoted = node.type in ("string", "translated_string")
    start, end = node.start_byte, node.end_byte
    if quoted:
        start += 2 if node.type == "translated_string" else 1
        end = max(start, end - 1)
    done = start
    for child in node.named_children:
        if quoted and child.type == "string_content":
            continue
        _unescape(layer, done, child.start_byte, pieces, quoted)
        _read(child, layer, variables, pieces, depth + 1)
        done = child.end_byte
    _unescape(layer, done, end, pieces, quoted)


def _unescape(layer: Layer, start: int, end: int, pieces: Pieces, quoted: bool) -> None:
    text = _slice(layer, start, end)
    offset = start
    for part in re.finditer(r"\\(\r?\n|.)|[^\\]+|\\", text, re.DOTALL):
        found, escaped = part.group(), part.group(1)
        if escaped is None:
            pieces.put(found, offset)
        elif escaped in ("\n", "\r\n"):
            pass
        elif quoted and escaped not in '$`"\\':
            pieces.put(found, offset)
        else:
            pieces.put(escaped, offset + 1)
        offset += len(found.encode("utf-8", "surrogateescape"))


def _ansi(layer: Layer, node: Node, pieces: Pieces) -> None:
    text = _slice(layer, node.start_byte + 2, node.end_byte - 1)
    offset = node.start_byte + 2
    for part in re.finditer(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|[0-7]{1,3}|.)|[^\\]+|\\", text, re.DOTALL):
        found, escaped = part.group(), part.group(1)
        if escaped is None:
            pieces.put(found, offset)
        elif escaped[0] in "xu" and len(escaped) > 1:
            code = int(escaped[1:], 16)
            pieces.put_one("\ufffd" if 0xD800 <= code < 0xE000 else chr(code), offset)
        elif escaped[0] in "01234567":
            pieces.put_one(chr(int(escaped, 8) & 0xFF), offset)
        else:
            pieces.put_one(ANSI.get(escaped, escaped), offset)
        offset += len(found.encode("utf-8", "surrogateescape"))


def _allowed(node: Node, variables: Variables) -> Word | None:
    """The value of a variable, None where the file does not say or the text has grown too much already."""
    value = _lookup(node, variables)
    return value if value is not None and variables.allowance.take(1 + len(value.text) // 16) else None


def _lookup(node: Node, variables: Variables) -> Word | None:
    """The value of `$X`, `${X}`, `${X:-y}`, `${X-y}`, `${X:=y}`; None where the file does not say."""
    text = (node.text or b"").decode("utf-8", "surrogateescape")
    plain = re.fullmatch(r"\$(?:(\w+)|\{(\w+)\})", text)
    if plain:
        return variables.scalars.get(plain.group(1) or plain.group(2))
    default = re.fullmatch(r"\$\{(\w+):?[-=]([^$`]*)\}", text, re.DOTALL)
    if not default:
        return None
    value = variables.scalars.get(default.group(1))
    if value is not None and (value.text or not value.known):
        return value
    start = len(text[: default.start(2)].encode("utf-8", "surrogateescape"))
    given = _unquote(default.group(2))
    return Word(
        given, [node.start_byte + start] * (len(given) + 1), Span(node.start_byte, node.end_byte), Layer.root(b"")
    )


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return re.sub(r"\\(.)", r"\1", text)


def _slice(layer: Layer, start: int, end: int) -> str:
    return layer.data[start : max(start, end)].decode("utf-8", "surrogateescape")


def nested(word: Word) -> Layer:
    """The word's value as a text of its own (`bash -c WORD`)."""
    data = word.text.encode("utf-8", "surrogateescape")
    encode = _encoder(word)
    whole = word.span == Span(0, len(word.layer.data)) and word.layer.parent is not None
    end = word.span.end - (1 if encode and not whole else 0)
    at = [*(o for c, o in zip(word.text, word.at, strict=False) for o in _bytes_at(c, o)), end]
    return Layer(data, at, word.layer, word.span, encode or _nowhere, shlex.quote)


def _bytes_at(char: str, offset: int) -> range:
    return range(offset, offset + len(char.encode("utf-8", "surrogateescape")))


def _encoder(word: Word) -> Callable[[str, Span], str | None] | None:
    if word.layer.parent is not None and word.span == Span(0, len(word.layer.data)):
        return lambda text, span: text
    raw = word.layer.data[word.span.start : word.span.end]
    if len(raw) > 1 and raw[:1] == b"'" == raw[-1:] and raw.count(b"'") == 2:
        return lambda text, span: None if "'" in text else text
    if len(raw) > 1 and raw[:1] == b'"' == raw[-1:] and len(re.findall(rb'(?<!\\)"', raw)) == 2:
        return lambda text, span: re.sub(r'([\\"$`])', r"\\\1", text)
    return None


def _nowhere(text: str, span: Span) -> None:
    return None
