"""YAML scalars character by character: where each character of a value is written, and how a value is written back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import msgspec

from trimtab.engine.source import Layer, Span

Encode = Callable[[str, Span], str | None]
ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
HEX = {"x": 2, "u": 4, "U": 8}
PROPERTIES = re.compile(r"(?:[&!][^\s]*\s+)+")
BREAK = re.compile(r"\r\n|\n|\r")
# Plain scalars that YAML 1.1 or 1.2 takes for something else than a string.
NOT_A_STRING = re.compile(
    r"|~|null|true|false|yes|no|on|off|y|n|[-+]?[0-9._]+(?:e[-+]?\d+)?|0[xob][0-9a-f_]+|[-+]?\.(?:inf|nan)|"
    r"\d+:\d+(?::\d+)*|\d{4}-\d\d?-\d\d?.*|=|<<",
    re.IGNORECASE,
)
UNSAFE_FIRST = "-?:,[]{}#&*!|>'\"%@` \t"


class Written(msgspec.Struct):
    """A value and, for each of its characters, the character index in the raw scalar."""

    text: list[str] = msgspec.field(default_factory=list)
    at: list[int] = msgspec.field(default_factory=list)

    def put(self, text: str, at: int, step: int = 0) -> None:
        for i, char in enumerate(text):
            self.text.append(char)
            self.at.append(at + i * step)

    def trim(self, keep: int) -> None:
        """Drop blanks at the end that stand at or after the raw index `keep`."""
        while self.text and self.text[-1] in " \t" and self.at[-1] >= keep:
            self.text.pop()
            self.at.pop()


def layer(value: str, style: str | None, parent: Layer, span: Span) -> Layer:
    """The value as a text of its own, standing at `span` of `parent`."""
    value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    raw = parent.data[span.start : span.end].decode("utf-8", "surrogateescape")
    props = PROPERTIES.match(raw)
    skip = props.end() if props else 0
    outer = Span(span.start + len(raw[:skip].encode("utf-8", "surrogateescape")), span.end)
    body = raw[skip:]
    written = Written()
    if style in ("'", '"'):
        _flow(body[1:-1], style, written)
        written.at = [i + 1 for i in written.at]
        end = len(body) - 1
    elif style in ("|", ">"):
        end = _block(body, style, written)
    else:
        _flow(body, "", written)
        end = len(body)
    data = value.encode("utf-8", "surrogateescape")
    if "".join(written.text).rstrip("\n") != value.rstrip("\n"):
        return Layer(data, [outer.start] * len(data) + [outer.end], parent, outer, _nowhere, _rewriter(style))
    common = min(len(written.at), len(value))
    at = written.at[:common] + [end] * (len(value) - common)
    places = _bytes_at(value, at, body, end, outer.start)
    return Layer(data, places, parent, outer, _encoder(style, body, data), _rewriter(style))


def _bytes_at(value: str, at: list[int], body: str, end: int, start: int) -> list[int]:
    if body.isascii() and value.isascii():
        return [start + i for i in at] + [start + end]
    offsets = [start]
    for char in body:
        offsets.append(offsets[-1] + len(char.encode("utf-8", "surrogateescape")))
    places: list[int] = []
    for char, i in zip(value, at, strict=True):
        places += [offsets[i] + (k if body[i : i + 1] == char else 0) for k in range(len(char.encode("utf-8")))]
    return [*places, offsets[end]]


def _nowhere(text: str, span: Span) -> None:
    return None


def _flow(body: str, style: str, written: Written) -> None:
    """Plain ("") and quoted scalars: escapes and folded lines."""
    i, kept = 0, 0
    while i < len(body):
        char = body[i]
        found = BREAK.match(body, i)
        if found:
            written.trim(kept)
            i = _fold(body, i, written)
        elif style == "'" and body.startswith("''", i):
            written.put("'", i)
            i += 2
        elif style == '"' and char == "\\" and i + 1 < len(body):
            i = _escape(body, i, written)
            kept = i
        else:
            written.put(char, i)
            i += 1


def _fold(body: str, i: int, written: Written) -> int:
    """Line breaks from `i` on as the value has them; gives where the next line's text begins."""
    first, breaks = i, 0
    while True:
        found = BREAK.match(body, i)
        if not found:
            break
        breaks += 1
        i = found.end()
        while i < len(body) and body[i] in " \t":
            i += 1
    written.put(" " if breaks == 1 else "\n" * (breaks - 1), first)
    return i


def _escape(body: str, i: int, written: Written) -> int:
    code = body[i + 1]
    found = BREAK.match(body, i + 1)
    if found:
        i = found.end()
        while i < len(body) and body[i] in " \t":
            i += 1
        return i
    if code in HEX:
        digits = body[i + 2 : i + 2 + HEX[code]]
        written.put(chr(int(digits, 16)), i)
        return i + 2 + HEX[code]
    written.put(ESCAPES.get(code, code), i)
    return i + 2


def _block(body: str, style: str, written: Written) -> int:
    """Literal and folded scalars, as ruamel.yaml's scanner reads them; gives the raw index where the text ends."""
    header = BREAK.search(body)
    if header is None:
        return len(body)
    lines = _lines(body, header.end())
    indent = next((len(text) - len(text.lstrip(" ")) for _, text in lines if text.strip(" ")), 0)
    breaks: list[int] = []
    before = ""
    for at, text in lines:
        content = text[indent:]
        if not content:
            breaks.append(at + len(text))
            continue
        if before:
            first, *more = breaks
            if style == "|" or before[0] in " \t" or content[0] in " \t":
                written.put("\n", first)
            elif not more:
                written.put(" ", first)
            breaks = more
        for place in breaks:
            written.put("\n", place)
        written.put(content, at + indent, 1)
        before, breaks = content, [at + len(text)]
    return lines[-1][0] + len(lines[-1][1]) if lines else len(body)


def _lines(body: str, i: int) -> list[tuple[int, str]]:
    """Raw index and text of each line from `i` on, blank ones at the end left out."""
    lines: list[tuple[int, str]] = []
    while i < len(body):
        found = BREAK.search(body, i)
        stop, after = (found.start(), found.end()) if found else (len(body), len(body))
        lines.append((i, body[i:stop]))
        i = after
    while lines and not lines[-1][1].strip(" "):
        lines.pop()
    return lines


def _encoder(style: str | None, body: str, data: bytes) -> Encode:
    if style == "'":
        return lambda text, span: None if "\n" in text else text.replace("'", "''")
    if style == '"':
        return lambda text, span: json.dumps(text, ensure_ascii=False)[1:-1]
    if style == "|":
        header = BREAK.search(body)
        indent = re.match(r"(?:[ ]*(?:\r\n|\n))*([ ]*)", body[header.end() if header else 0 :])
        newline = "\r\n" if header and header.group() == "\r\n" else "\n"
        return lambda text, span: text.replace("\n", newline + (indent.group(1) if indent else ""))
    if style == ">":
        return lambda text, span: None if "\n" in text or (text.startswith(" ") and span.start == 0) else text
    return lambda text, span: _plain(text, span, data)


def _plain(text: str, span: Span, data: bytes) -> str | None:
    """The replacement if the scalar, with it in place, is still the same plain string."""
    before, after = data[: span.start].decode("utf-8", "replace"), data[span.end :].decode("utf-8", "replace")
    was_string = not NOT_A_STRING.fullmatch(data.decode("utf-8", "replace"))
    whole = before + text + after
    return text if is_plain(whole, flow=True) and (not was_string or not NOT_A_STRING.fullmatch(whole)) else None


def is_plain(text: str, *, flow: bool = False) -> bool:
    """Whether the text can stand unquoted (its type aside); `flow`: also inside `[...]`."""
    if not text or "\n" in text or text != text.strip() or ": " in text or " #" in text or text.endswith(":"):
        return False
    if text[0] in UNSAFE_FIRST and not re.match(r"[-?:][^\s,\[\]{}]", text):
        return False
    return text.isprintable() and not (flow and re.search(r"[,\[\]{}]", text))


def quote(text: str, *, flow: bool = False) -> str:
    """The text as a YAML string."""
    if is_plain(text, flow=flow) and not flow and not NOT_A_STRING.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _rewriter(style: str | None) -> Callable[[str], str]:
    if style == "'":
        return lambda text: (
            json.dumps(text, ensure_ascii=False) if "\n" in text else "'" + text.replace("'", "''") + "'"
        )
    return quote if style != '"' else (lambda text: json.dumps(text, ensure_ascii=False))
