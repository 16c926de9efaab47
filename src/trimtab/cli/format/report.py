"""A report of one server as one Markdown file: sections of text, tables and quoted output."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from trimtab.messages import Message


class Section(msgspec.Struct, frozen=True):
    """One heading and its parts: plain text, or what is quoted as it is with the language of its block."""

    heading: Message
    parts: tuple[tuple[str, str | None], ...]  # text, and for a quoted one its language ("" for none), else None


def quoted(heading: Message, text: str, language: str = "") -> Section:
    return Section(heading, ((text, language),))


def listed(heading: Message, rows: Sequence[tuple[str, object]]) -> Section:
    """A list of names and values; those without a value are left out."""
    lines = [f"- {name}: {value}" for name, value in rows if value not in (None, "")]
    return Section(heading, (("\n".join(lines), None),))


def report_markdown(title: str, lead: str, sections: Sequence[Section], lang: str) -> str:
    """The whole file, unredacted."""
    blocks = [f"# {title}", lead]
    for section in sections:
        blocks.append(f"## {section.heading.text(lang)}")
        blocks += [text if language is None else _fenced(text, language) for text, language in section.parts if text]
    return "\n\n".join(blocks) + "\n"


def _fenced(text: str, language: str) -> str:
    """A block that no run of backticks within it can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
