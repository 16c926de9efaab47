"""Edits of a launch in the text it was read from: one flag set, removed or renamed, every other byte kept."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from trimtab.engine.command import FlagUse, LaunchCommand
from trimtab.engine.source import Edit, Item, Layer, Span, Word, gap_start, lift, together

Pending = list[tuple[Layer, Edit]]
PLAIN = re.compile(r"[\w@%+=:,./-]+")
GAP_AFTER = re.compile(rb"(?:[ \t\r\n]|[\\`^]\r?\n)*")


def set_flag(command: LaunchCommand, name: str, value: str | None) -> list[Edit]:
    """Give the flag this value (None: leave it bare) where it counts, or add it at the end.

    Empty when there is nothing to change or the place cannot hold it (a value with quotes inside a variable).
    """
    last = command.last(name)
    if last is None or not last.words:
        return lift(_append(command, f"--{name}", value))
    if last.negated:
        return lift([*_respell(last, f"--{last.dotted}"), *_revalue(command, last, value)])
    return lift(_revalue(command, last, value))


def remove_flag(command: LaunchCommand, name: str) -> list[Edit]:
    """Take out every use of the flag, dotted ones with it, each with its values and its line continuation."""
    return remove_uses(command, [flag for flag in command.flags if name in (flag.name, flag.dotted)])


def remove_uses(command: LaunchCommand, uses: Sequence[FlagUse]) -> list[Edit]:
    """Take out these uses of flags of the command."""
    pending: Pending = []
    listed: list[Item] = []
    for flag in uses:
        pending += _take_out(command, [w for w in flag.words if w.item is None])
        listed += [w.item for w in flag.words if w.item is not None]
    return lift([*_merged(pending), *_unlisted(listed)])


def rename_flag(command: LaunchCommand, name: str, new: str) -> list[Edit]:
    """Spell every use of the flag with its new long name (no dashes in front); values and negation stay."""
    pending: Pending = []
    for flag in command.flags:
        if name in (flag.name, flag.dotted):
            path = flag.path if name == flag.name else ()
            pending += _respell(flag, f"--{'no-' if flag.negated else ''}{'.'.join((new, *path))}")
    return lift(pending)


def _respell(flag: FlagUse, spelling: str) -> Pending:
    word = flag.words[0]
    if word.item and word.item.listing.pairs:
        return _rewrite(word, 0, spelling.lstrip("-"))
    size = len(flag.spelling)
    raw = word.layer.data[word.at[0] : word.at[size]].decode("utf-8", "surrogateescape")
    if raw == word.text[:size] and word.text.startswith(flag.spelling):
        return [(word.layer, Edit(Span(word.at[0], word.at[size]), spelling))]
    return _rewrite(word, 0, spelling + word.text[size:])


def _revalue(command: LaunchCommand, flag: FlagUse, value: str | None) -> Pending:
    if value == flag.value:
        return []
    word = flag.words[0]
    attached = len(flag.words) == 1 and flag.value is not None
    if value is None:
        return _cut_value(flag, attached)
    if attached:
        return _rewrite(word, len(word.text) - len(flag.value or ""), value)
    if flag.value is None and len(flag.words) == 1:
        return _insert(word, [value], " ")
    first, *more = _standing(command, flag.words[1:])
    return [*_rewrite(first, 0, value), *_gone(more)]


def _cut_value(flag: FlagUse, attached: bool) -> Pending:
    word = flag.words[0]
    if word.item and word.item.listing.pairs:
        return _rewrite(flag.words[1], 0, "true")
    if not attached:
        return _gone(flag.words[1:])
    cut = len(word.text) - len(flag.value or "") - word.text.count("=", 0, len(flag.spelling) + 1)
    if word.item is None and not _starts_quoted(word):
        return [(word.layer, Edit(Span(word.at[cut], word.span.end), ""))]
    return _rewrite(word, 0, word.text[:cut])


def _starts_quoted(word: Word) -> bool:
    return word.layer.data[word.span.start : word.span.start + 1] in (b"'", b'"', b"$")


def _rewrite(word: Word, first: int, text: str) -> Pending:
    """The word's text from its character `first` on becomes `text`; the quotes it has are kept where they can."""
    if word.item is not None:
        return [(word.layer, Edit(Span(word.at[first], word.span.end), text))]
    if word.via is not None and not PLAIN.fullmatch(text):
        return []
    if first and _starts_quoted(word):
        first, text = 0, word.text[:first] + text
    start = word.start_of(first)
    return [(word.layer, Edit(Span(start, word.span.end), requote(text, word.layer.data[start : word.span.end])))]


def requote(text: str, like: bytes) -> str:
    """The text as a shell word, in the quotes of `like` where these can hold it."""
    if like[:1] == b"'" and "'" not in text:
        return f"'{text}'"
    if like[:1] == b'"' == like[-1:]:
        return '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"'
    return shlex.quote(text)


def _append(command: LaunchCommand, flag: str, value: str | None) -> Pending:
    texts = [flag] if value is None else [flag, value]
    words = command.words or command.program
    if not words:
        return []
    return _insert(words[-1], texts, _separator(command))


def _separator(command: LaunchCommand) -> str:
    """What stands before the last flag, so that a flag added stands like it."""
    for flag in reversed(command.flags):
        word = flag.words[0] if flag.words else None
        if word is None or word.item or word.layer is not command.words[-1].layer:
            continue
        text = word.layer.data[gap_start(word.layer.data, word.span.start) : word.span.start].decode()
        return text if "\n" in text else " "
    return " "


def _insert(word: Word, texts: Sequence[str], separator: str) -> Pending:
    item = word.item
    if word.via is not None and not all(PLAIN.fullmatch(t) for t in texts):
        return []
    if item is None:
        written = separator + " ".join(shlex.quote(t) for t in texts)
        return [(word.layer, Edit(Span(word.span.end, word.span.end), written))]
    listing = item.listing
    if listing.pairs:
        key, value = texts[0].lstrip("-"), (listing.write(texts[1]) if len(texts) > 1 else "true")
        written = f"{listing.lead}{key}: {value}"
    else:
        written = "".join(listing.lead + listing.write(t) for t in texts)
    place = listing.after(item.index)
    return [(listing.layer, Edit(Span(place, place), written))]


def _take_out(command: LaunchCommand, flag_words: Sequence[Word]) -> Pending:
    words = _standing(command, flag_words)
    if not words or not together(words):
        return _gone(words)
    layer, start, end = words[0].layer, words[0].span.start, words[-1].span.end
    gap = gap_start(layer.data, start)
    after = GAP_AFTER.match(layer.data, end)
    gap_after = after.group() if after else b""
    next_on_line = b"\n" not in gap_after and _next_on_line(command, layer, end + len(gap_after))
    if next_on_line and (gap == start or b"\n" in layer.data[gap:start]):
        return [(layer, Edit(Span(start, end + len(gap_after)), ""))]
    return [(layer, Edit(Span(gap, end), ""))]


def _standing(command: LaunchCommand, words: Sequence[Word]) -> list[Word]:
    """The words as they stand in the command: a variable's whole value, if all of it is among them, as its `$X`."""
    standing: list[Word] = []
    for word in words:
        if word.via is None or sum(w.via == word.via for w in command.words) != sum(w.via == word.via for w in words):
            standing.append(word)
        elif not standing or standing[-1].span != word.via:
            standing.append(Word(word.text, [word.via.start] * (len(word.text) + 1), word.via, word.layer))
    return standing


def _next_on_line(command: LaunchCommand, layer: Layer, offset: int) -> bool:
    if layer.data[offset : offset + 1] == b"#":
        return True
    return any(w.layer is layer and offset in (w.span.start, w.via and w.via.start) for w in command.words)


def _gone(words: Sequence[Word]) -> Pending:
    alone = [w for w in words if w.item is None]
    pending: Pending = [(w.layer, Edit(Span(gap_start(w.layer.data, w.span.start), w.span.end), "")) for w in alone]
    return [*pending, *_unlisted([w.item for w in words if w.item is not None])]


def _unlisted(items: Sequence[Item]) -> Pending:
    """Items taken out of their lists, neighbours in one go."""
    pending: Pending = []
    for listing in {id(i.listing): i.listing for i in items}.values():
        indices = sorted({i.index for i in items if i.listing is listing})
        runs: list[list[int]] = []
        for index in indices:
            if runs and runs[-1][-1] == index - 1:
                runs[-1].append(index)
            else:
                runs.append([index])
        pending += [(listing.layer, Edit(listing.without(run[0], run[-1]), "")) for run in runs]
    return pending


def _merged(pending: Pending) -> Pending:
    """Removals that touch or overlap become one."""
    merged: Pending = []
    for layer, edit in sorted(pending, key=lambda p: (id(p[0]), p[1].span)):
        if merged and merged[-1][0] is layer and edit.span.start <= merged[-1][1].span.end:
            last = merged.pop()[1]
            merged.append((layer, Edit(Span(last.span.start, max(last.span.end, edit.span.end)), "")))
        else:
            merged.append((layer, edit))
    return merged
