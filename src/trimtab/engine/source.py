"""Where something stands in a text: spans, positions, edits, and texts nested in other texts (shell in YAML)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from trimtab.errors import InternalError
from trimtab.messages import Message, msg


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Half-open range [start, end) in UTF-8 bytes of the source."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `replacement` in place of `span`; an empty span inserts."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read as it stands; line and column count from 1, column in characters."""

    message: Message
    span: Span
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes that were read, kept exactly (BOM and CRLF too), and the name they came under."""

    data: bytes
    filename: str | None = None

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")

    def line_column(self, offset: int) -> tuple[int, int]:
        """Line and column (1-based, in characters, a BOM not counted) of a byte offset."""
        start = self.data.rfind(b"\n", 0, offset) + 1
        before = self.data[start:offset]
        if start == 0:
            before = before.removeprefix(b"\xef\xbb\xbf")
        return self.data.count(b"\n", 0, start) + 1, len(before.decode("utf-8", "replace")) + 1

    def problem(self, message: Message, span: Span) -> Problem:
        return Problem(message, span, *self.line_column(span.start))


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


@dataclass(frozen=True, slots=True)
class Layer:
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

    def root_span(self, span: Span) -> Span:
        """The span in the source of a span of this layer."""
        layer: Layer | None = self
        start, end = span.start, span.end
        while layer is not None and layer.parent is not None:
            last = layer.at[end - 1] + 1 if end > start else layer.at[start]
            start, end = layer.at[start], max(last, layer.at[end]) if end == len(layer.data) else last
            layer = layer.parent
        return Span(start, end)

    def lift(self, edits: Sequence[Edit]) -> list[Edit]:
        """Edits of this layer as edits of the source."""
        if self.parent is None or not edits:
            return list(edits)
        lifted: list[Edit] = []
        for edit in edits:
            written = self.encode(edit.replacement, edit.span)
            if written is None:
                text = apply_edits(self.data.decode("utf-8", "surrogateescape"), edits)
                return self.parent.lift([Edit(self.outer, self.rewrite(text))])
            lifted.append(Edit(Span(self.at[edit.span.start], self.at[edit.span.end]), written))
        return self.parent.lift(lifted)


@dataclass(frozen=True, slots=True)
class Word:
    """One argument: its value, and for each character of it the byte offset in `layer` (one entry more at the end).

    `span` is the whole word in `layer`, quotes included. `known` is False where a part of the value depends on
    something outside the file; the text then holds that part as it is spelt.
    """

    text: str
    at: Sequence[int]
    span: Span
    layer: Layer
    known: bool = True

    def source_span(self, first: int = 0) -> Span:
        """Where it stands in the source: the whole word, or from its character `first` to its end."""
        return self.layer.root_span(Span(self.at[first], self.span.end) if first else self.span)
