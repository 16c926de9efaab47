"""A report as a value, and that value as one HTML file: no network, no script, light and dark, printable.

Every report of this room is a `Page`: titled sections, each with its verdict line first, then tables, pictures and
notes. Texts are messages (in the reader's language) or plain strings; `html` escapes both, so that a model's name or
an answer may hold anything. `cli/pages.py` writes it to a file. Pictures are `Chart`s of `bench/charts.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Literal

import msgspec

from trimtab import shipped
from trimtab.bench.charts import Chart, printed, svg
from trimtab.messages import Message

Text = Message | str
State = Literal["good", "bad", "unknown", "plain"]  # of a verdict, a note or a cell: its colour and its sign
_SIGNS = {"good": "✓", "bad": "✗", "unknown": "?", "plain": ""}


class Note(msgspec.Struct, frozen=True):
    """A line of text."""

    text: Text
    state: State = "plain"


class Cell(msgspec.Struct, frozen=True):
    """A cell of a table, marked as good or bad."""

    text: Text
    state: State = "plain"


class Table(msgspec.Struct, frozen=True):
    """Rows under headings; the first column is text and reads from the left, all others from the right."""

    headings: tuple[Text, ...]
    rows: tuple[tuple[Text | Cell, ...], ...]
    caption: Text = ""
    prose: bool = False  # every column reads from the left


class Literally(msgspec.Struct, frozen=True):
    """A command, a prompt or an answer as it is, in its own line breaks."""

    text: str
    title: Text = ""


class Piece(msgspec.Struct, frozen=True):
    """Part of a text; `changed` where the other side has something else."""

    text: str
    changed: bool = False


class Sides(msgspec.Struct, frozen=True):
    """Two texts side by side, with what differs marked."""

    titles: tuple[Text, Text]
    left: tuple[Piece, ...]
    right: tuple[Piece, ...]


class Folded(msgspec.Struct, frozen=True):
    """Blocks that are shown when their title is opened; printed in full."""

    title: Text
    blocks: tuple[Note | Table | Literally | Sides | Chart, ...]
    state: State = "plain"


Block = Note | Table | Literally | Sides | Folded | Chart


class Section(msgspec.Struct, frozen=True):
    """A heading and what is under it."""

    title: Text
    blocks: tuple[Block, ...]


class Page(msgspec.Struct, frozen=True):
    """A whole report; `verdict` is the first thing read, `facts` are names and values under it, `foot` ends it."""

    title: Text
    verdict: Note
    facts: tuple[tuple[Text, Text], ...] = ()
    sections: tuple[Section, ...] = ()
    foot: Text = ""


def html(page: Page, lang: str) -> str:
    """The file. HostError where there is a chart and matplotlib is missing (`charts.require` tells that early)."""
    title = _text(page.title, lang)
    facts = "".join(_fact(name, values, lang) for name, values in groupby(page.facts, key=lambda fact: fact[0]))
    sections = "".join(_section(section, lang, at) for at, section in enumerate(page.sections))
    head = (
        f'<!DOCTYPE html>\n<html lang="{"zh-CN" if lang == "zh" else "en"}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<meta name="color-scheme" content="light dark"><title>{title}</title><style>{_style()}</style></head>'
    )
    foot = f"<footer>{_text(page.foot, lang)}</footer>" if page.foot else ""
    verdict = _note(page.verdict, lang, "verdict")
    body = f"<body><main><h1>{title}</h1>{verdict}<dl>{facts}</dl>{sections}{foot}</main></body></html>\n"
    return head + body


def _fact(name: Text, values: Iterable[tuple[Text, Text]], lang: str) -> str:
    """A name once, and the values under it."""
    return f"<dt>{_text(name, lang)}</dt>" + "".join(f"<dd>{_text(value, lang)}</dd>" for _, value in values)


def _style() -> str:
    return shipped.read(__name__, "page.css").decode()


def _section(section: Section, lang: str, at: int) -> str:
    blocks = "\n".join(_block(block, lang, f"{at}-{number}") for number, block in enumerate(section.blocks))
    return f"\n<section><h2>{_text(section.title, lang)}</h2>\n{blocks}</section>"


def _block(block: Block, lang: str, mark: str) -> str:
    match block:
        case Note():
            return _note(block, lang, "note")
        case Table():
            return _table(block, lang)
        case Literally():
            title = f"<h3>{_text(block.title, lang)}</h3>" if block.title else ""
            return f"{title}<pre>{_text(block.text, lang)}</pre>"
        case Sides():
            return _sides(block, lang)
        case Folded():
            inner = "\n".join(_block(one, lang, f"{mark}-{at}") for at, one in enumerate(block.blocks))
            summary = f"{_sign(block.state)}{_text(block.title, lang)}"
            return f'<details class="{block.state}"><summary>{summary}</summary>{inner}</details>'
        case Chart():
            caption = f"<figcaption>{_text(block.caption, lang)}</figcaption>" if block.caption else ""
            return f"<figure>{svg(block, lang, mark)}{caption}</figure>"


def _note(note: Note, lang: str, kind: str) -> str:
    return f'<p class="{kind} {note.state}">{_sign(note.state)}{_text(note.text, lang)}</p>'


def _table(table: Table, lang: str) -> str:
    caption = f"<caption>{_text(table.caption, lang)}</caption>" if table.caption else ""
    headings = "".join(f'<th scope="col">{_text(heading, lang)}</th>' for heading in table.headings)
    rows = "".join(f"<tr>{''.join(_cell(cell, lang) for cell in row)}</tr>\n" for row in table.rows)
    kind = ' class="prose"' if table.prose else ""
    return (
        f'<div class="wide"><table{kind}>{caption}<thead><tr>{headings}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _cell(cell: Text | Cell, lang: str) -> str:
    if isinstance(cell, Cell):
        return f'<td class="{cell.state}">{_sign(cell.state)}{_text(cell.text, lang)}</td>'
    return f"<td>{_text(cell, lang)}</td>"


def _sides(sides: Sides, lang: str) -> str:
    columns = "".join(
        f"<div><h3>{_text(title, lang)}</h3><pre>{_pieces(pieces)}</pre></div>"
        for title, pieces in zip(sides.titles, (sides.left, sides.right), strict=True)
    )
    return f'<div class="sides">{columns}</div>'


def _pieces(pieces: Sequence[Piece]) -> str:
    return "".join(f"<mark>{_safe(p.text)}</mark>" if p.changed else _safe(p.text) for p in pieces)


def _sign(state: State) -> str:
    return f'<span class="sign" aria-hidden="true">{_SIGNS[state]}</span>&nbsp;' if _SIGNS[state] else ""


def _text(text: Text, lang: str) -> str:
    return _safe(text.text(lang) if isinstance(text, Message) else text)


def _safe(text: str) -> str:
    return escape(printed(text), quote=True)
