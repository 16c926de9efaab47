"""Flags that the user gave after `--`: read once into vLLM's names and values, never changed by the planner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trimtab.engine.command import FlagUse, LaunchCommand
from trimtab.engine.flags import FlagTable
from trimtab.errors import UsageError
from trimtab.messages import msg


def flags_of(words: Sequence[str]) -> tuple[FlagUse, ...]:
    """The flags among words of a command line. UsageError for a word that belongs to no flag."""
    command = LaunchCommand.from_argv(["vllm", "serve", *words])
    stray = command.model or next(iter(command.strays), None)
    if stray is not None:
        before = words[words.index(stray.text) - 1] if stray.text in words[1:] else ""
        raise UsageError(
            msg("{word!r} stands after {flag}, which takes no value", word=stray.text, flag=before)
            if before.startswith("-")
            else msg("{word!r} after -- belongs to no flag", word=stray.text),
            hint=msg("After -- stand vLLM flags only, for example: -- --max-model-len 8192"),
        )
    return command.flags


def words_of(settings: Iterable[str], table: FlagTable) -> list[str]:
    """`--set` values ("max-num-seqs=8", "enforce-eager") as words of a command line.

    UsageError for a flag that this vLLM does not have, with the nearest that it has.
    """
    words: list[str] = []
    for setting in settings:
        name, equals, value = setting.partition("=")
        bare = name.strip().lstrip("-").replace("_", "-")
        short = f"-{bare}"
        spelling = short if table.find(f"--{bare}") is None and table.find(short) is not None else f"--{bare}"
        if table.find(spelling) is None:
            near = ", ".join(table.nearest(spelling))
            raise UsageError(
                msg("vLLM {version} has no flag {flag}", version=table.version, flag=spelling),
                hint=msg("Did you mean {near}?", near=near) if near else msg("trimtab flags lists what it takes."),
            )
        words += [spelling, value] if equals else [spelling]
    return words


def pinned_of(flags: Iterable[FlagUse]) -> Mapping[str, object]:
    """vLLM's names with underscores -> int, float, bool or text; the last use of a flag counts."""
    return {use.dotted.replace("-", "_"): _value(use.value, negated=use.negated) for use in flags}


def named(pinned: Mapping[str, object], otherwise: str) -> tuple[tuple[str, ...], Mapping[str, object]]:
    """What clients may send as `model`: the pinned names, which blanks part, else `otherwise`; and the other flags."""
    names = tuple(str(pinned.get("served_model_name") or "").split())
    others = {name: value for name, value in pinned.items() if name != "served_model_name"}
    return names or (otherwise,), others


def _value(text: str | None, *, negated: bool) -> object:
    if negated:
        return False
    if text is None or text.lower() == "true":
        return True
    if text.lower() == "false":
        return False
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
