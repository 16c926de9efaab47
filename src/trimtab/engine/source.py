"""Where something stands in a text: spans, positions, edits, and texts nested in other texts (shell in YAML)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

from trimtab.errors import InternalError
from trimtab.messages import Message, msg


class Span(msgspec.Struct, frozen=True, order=True):
    """Half-open range [start, end) in UTF-8 bytes of the source."""

    start: int
    end: int


class Edit(msgspec.Struct, frozen=True):
    """Put `replacement` in place of `span`; an empty span inserts."""

    span: Span
    replacement: str


class Problem(msgspec.Struct, frozen=True):
    """Something that could not be read as it stands; line and column count from 1, column in characters."""

    message: Message
    span: Span
    line: int
    column: int


class Source(msgspec.Struct, frozen=True):
    """The bytes that were read, kept exactly (BOM and CRLF too), and the name they came under."""

    data: bytes
    filename: str | None = None

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")

    def line_column(self, offset: int) -> tuple[int, int]:
        """Line and column (1-based, in characters, a BOM not counted) of a byte offset."""
        starts = _line_starts(self.data)
        line = bisect_right(starts, offset)
        before = self.data[starts[line - 1] : offset]
        if line == 1:
            before = before.removeprefix(b"\xef\xbb\xbf")
        return line, len(before.decode("utf-8", "replace")) + 1

    def problem(self, message: Message, span: Span) -> Problem:
        return Problem(message, span, *self.line_column(span.start))


@lru_cache(maxsize=4)
def _line_starts(data: bytes) -> list[int]:
    """Where each line begins; kept, since a text of many launches asks for many places."""
    return [0, *(found.end() for found in re.finditer(b"\n", data))]


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits (spans in UTF-8 bytes of `text`), all against the original; overlapping ones are an InternalError."""
    data = text.encode("utf-8", "surrogateescape")
    out: list[bytes] = []
    done = 0
    for edit in sorted(dict.fromkeys(edits), key=lambda e: e.span):
        if edit.span.start < done or edit.span.end > len(data):
            raise InternalError(msg("Edits overlap at byte {offset}.", offset=edit.span.start))
        out += [data[done : edit.span.start], edit.replacement.encode("utf-8", "surrogateescape")]
        done = edit.span.end
    return b"".join([*out, data[done:]]).decode("utf-8", "surrogateescape")


class Layer(msgspec.Struct, frozen=True, eq=False):
    """A text as its reader sees it (`data`), and how it stands in the text around it.

    `at[i]` is the offset in the parent of the byte at i; it has one entry more than `data`. `encode` writes a
    replacement for direct insertion at a span of this layer, or returns None where that cannot be written there;
    `rewrite` writes the whole of the layer anew, to stand for `outer` in the parent.
    """

    data: bytes
    at: Sequence[int]
    parent: Layer | None = None
    outer: Span = Span(0, 0)
    encode: Callable[[str, Span], str | None] = lambda text, span: text
    rewrite: Callable[[str], str] = lambda text: text

    @classmethod
    def root(cls, data: bytes) -> Layer:
        return cls(data, range(len(data) + 1))

    @property
    def depth(self) -> int:
        """How many texts this one stands in."""
        return 0 if self.parent is None else self.parent.depth + 1

    def root_span(self, span: Span) -> Span:
        """The span in the source of a span of this layer."""
        layer: Layer | None = self
        start, end = span.start, span.end
        while layer is not None and layer.parent is not None:
            last = layer.at[end - 1] + 1 if end > start else layer.at[start]
            start, end = layer.at[start], max(last, layer.at[end]) if end == len(layer.data) else last
            layer = layer.parent
        return Span(start, end)

    def raised(self, edits: Sequence[Edit]) -> list[Edit]:
        """Edits of this layer as edits of its parent."""
        lifted: list[Edit] = []
        for edit in edits:
            written = self.encode(edit.replacement, edit.span)
            if written is None:
                text = apply_edits(self.data.decode("utf-8", "surrogateescape"), edits)
                return [Edit(self.outer, self.rewrite(text))]
            lifted.append(Edit(Span(self.at[edit.span.start], self.at[edit.span.end]), written))
        return lifted


def lift(edits: Iterable[tuple[Layer, Edit]]) -> list[Edit]:
    """Edits that stand in layers as edits of the source, in order."""
    todo: dict[int, tuple[Layer, list[Edit]]] = {}
    for layer, edit in edits:
        todo.setdefault(id(layer), (layer, []))[1].append(edit)
    done: list[Edit] = []
    while todo:
        key = max(todo, key=lambda k: todo[k][0].depth)
        layer, own = todo.pop(key)
        if layer.parent is None:
            done += own
        else:
            todo.setdefault(id(layer.parent), (layer.parent, []))[1].extend(layer.raised(own))
    return sorted(done, key=lambda e: e.span)


class Listing(msgspec.Struct, frozen=True, eq=False):
    """A list or mapping whose items are words: a YAML sequence, a JSON array, a vLLM config file.

    `items` are the items' spans in `layer` without what parts them; `lead` is written before an item that is added.
    In a flow list (`[a, b]`) an item goes with its comma, else with its lines. `pairs`: items are `key: value`.
    """

    layer: Layer
    items: tuple[Span, ...]
    lead: str
    write: Callable[[str], str]
    flow: bool = False
    pairs: bool = False

    def without(self, first: int, last: int) -> Span:
        """What goes when the items from `first` to `last` (inclusive) go."""
        start, end = self.items[first].start, self.items[last].end
        if self.flow:
            if last + 1 < len(self.items):
                return Span(start, self.items[last + 1].start)
            return Span(self.items[first - 1].end if first else start, end)
        after = self.layer.data.find(b"\n", max(start, end - 1))
        return Span(self.layer.data.rfind(b"\n", 0, start) + 1, len(self.layer.data) if after < 0 else after + 1)

    def after(self, index: int) -> int:
        """Where an item is put that follows the item at `index`."""
        end = self.items[index].end
        if self.flow:
            return end
        line = self.layer.data.find(b"\n", end)
        line = len(self.layer.data) if line < 0 else line
        return line - 1 if self.layer.data[line - 1 : line] == b"\r" else line


class Item(msgspec.Struct, frozen=True, eq=False):
    """A word's place in a listing."""

    listing: Listing
    index: int


class Word(msgspec.Struct, frozen=True, eq=False):
    """One argument: its value, and for each character of it the byte offset in `layer` (one entry more at the end).

    `span` is the whole word in `layer`, quotes included. `known` is False where a part of the value depends on
    something outside the file; the text then holds that part as it is spelt. `via` is the `$X` in `layer` whose
    value the word is a part of.
    """

    text: str
    at: Sequence[int]
    span: Span
    layer: Layer
    known: bool = True
    item: Item | None = None
    via: Span | None = None

    def source_span(self, first: int = 0) -> Span:
        """Where it stands in the source: the whole word, or from its character `first` to its end."""
        return self.layer.root_span(Span(self.start_of(first), self.span.end))

    def start_of(self, first: int) -> int:
        """The offset in `layer` where its part from character `first` on begins, the part's own quote included."""
        if first == 0:
            return self.span.start
        return min(self.at[first - 1] + 1, self.at[first])


CONTINUATION = re.compile(rb"[\\`^]\r?\n")


def together(words: Sequence[Word]) -> bool:
    """Whether the words stand side by side in one text, with only white space and line continuations between."""
    return all(
        a.layer is b.layer
        and b.span.start >= a.span.end
        and not CONTINUATION.sub(b"", a.layer.data[a.span.end : b.span.start]).strip()
        for a, b in pairwise(words)
    )


CONTINUATIONS = (b"\\", b"`", b"^")
"""At the end of a line: of a POSIX shell, of PowerShell, of cmd."""


def gap_start(data: bytes, offset: int) -> int:
    """Where the white space and line continuations before `offset` begin."""
    start = offset
    while start > 0:
        byte = data[start - 1 : start]
        continued = byte in CONTINUATIONS and data[start : start + 2].startswith((b"\n", b"\r\n"))
        if byte not in (b" ", b"\t", b"\r", b"\n") and not continued:
            break
        start -= 1
    if start > 0 and data[start - 1 : start] in CONTINUATIONS and start < offset:
        start += 1
    return start
