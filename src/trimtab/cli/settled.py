"""A launch command as a shell would start it here: what its text leaves to the environment is filled in, or refused."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from trimtab.engine.command import LaunchCommand
from trimtab.errors import UsageError
from trimtab.messages import Message, msg

_OPEN = re.compile(r"[$`<%{]")


def settled(command: LaunchCommand, replaced: tuple[str, ...] = ()) -> LaunchCommand:
    """The command with `$NAME` and `${NAME}` from this process's environment.

    UsageError for the first word that stays open (a variable that nobody set, `$(...)`, `<model>`), but for the flags
    that are `replaced` anyway.
    """
    open_words = {text: where for where, text in _open(command, replaced)}
    if not open_words and not any(use.unknown for use in command.env.values()):
        return command
    for text, where in open_words.items():
        if os.path.expandvars(text) == text:
            raise UsageError(
                msg("{where} of the launch command is {text}, which nothing here sets", where=where, text=text),
                hint=msg("Export the variable, or put the value in its place: trimtab up -- vllm serve MODEL ..."),
            )
    words = [os.path.expandvars(word) if word in open_words else word for word in command.argv()]
    return LaunchCommand.from_argv(words, _environment(command))


def _open(command: LaunchCommand, replaced: tuple[str, ...]) -> Iterator[tuple[Message | str, str]]:
    if command.model is not None and command.model.unknown:
        yield msg("the model"), command.model.text
    for use in command.flags:
        if use.unknown and use.name not in replaced:
            open_values = [text for text in use.values if _OPEN.search(text)]
            for text in open_values or use.values:
                yield f"--{use.dotted}", text


def _environment(command: LaunchCommand) -> dict[str, str]:
    """The variables in front of the command; one that hands on what nobody set is left to the environment."""
    found: dict[str, str] = {}
    for name, use in command.env.items():
        if use.value is None:
            continue
        value = os.path.expandvars(use.value) if use.unknown else use.value
        if not use.unknown or value != use.value:
            found[name] = value
    return found
