"""What several command rules say or ask alike: which flags are vLLM's to judge, and a version in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from trimtab.engine.command import FlagUse
from trimtab.engine.flags import FlagSpec, history, minors
from trimtab.messages import Message, msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.runner import release

SERVERS = ("serve", "api_server")
ARGUMENTS = re.compile(r"\$.*(?:ARG|OPT|FLAG|EXTRA|PARAM|[@*])", re.IGNORECASE)
PLACEHOLDER = ("<", "{{", "...", "…", "$")


def serves(context: CommandContext) -> bool:
    """Whether the command starts vLLM's OpenAI server, whose flags the tables hold.

    Not so the demo server, the gRPC server, KServe's own runtime, and vLLM-Omni, which has flags of its own.
    """
    return context.command.subcommand in SERVERS and not context.command.all("omni")


def known_flags(context: CommandContext) -> Iterator[tuple[FlagUse, FlagSpec]]:
    """Every use of a flag that this vLLM has, with what the table says of it."""
    if not serves(context):
        return
    for use in context.command.flags:
        spec = context.flags.find(use.spelling)
        if spec is not None:
            yield use, spec


def absent_flags(context: CommandContext) -> Iterator[FlagUse]:
    """Every use of a flag that this vLLM does not have."""
    if serves(context):
        yield from (use for use in context.command.flags if context.flags.find(use.spelling) is None)


def is_gone(context: CommandContext, name: str) -> bool:
    """Whether a flag or variable was known up to some version before this one."""
    span = history(name)
    return span is not None and span.until is not None and release(context.version)[:2] > release(span.until)


def next_minor(minor: str) -> str:
    """The minor version after one that has a successor: the first without a flag whose last was `minor`."""
    order = minors()
    return order[order.index(minor) + 1]


def is_open(value: str, unknown: bool) -> bool:
    """Whether a value is not settled by the text: from outside the file, or a placeholder."""
    return unknown or any(mark in value for mark in PLACEHOLDER)


def vllm(context: CommandContext) -> Message:
    """ "vLLM 0.33", and that it is assumed where nobody named it."""
    if context.version_assumed:
        return msg("vLLM {version} (assumed)", zh="vLLM {version}（假定）", version=context.version)
    return msg("vLLM {version}", zh="vLLM {version}", version=context.version)


def json_object(context: CommandContext, name: str) -> dict[str, Any]:
    """The JSON object that a flag is given, with its dotted keys; what does not parse is left out."""
    found: dict[str, Any] = {}
    for use in context.command.flags:
        if use.name != name or use.value is None:
            continue
        if len(use.path) == 1:
            found[use.path[0].replace("-", "_")] = parsed(use.value)
        elif not use.path:
            value = parsed(use.value)
            found |= value if isinstance(value, dict) else {}
    return found


def parsed(text: str) -> Any:
    """The value of JSON text; the text itself where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def is_complete(context: CommandContext) -> bool:
    """Whether no word of the command may stand for flags that are not seen (`$EXTRA_ARGS`)."""
    command = context.command
    if any(word.unknown and not word.text.startswith("<") for word in command.strays):
        return False
    if any(use.unknown and len(use.values) > 1 for use in command.flags):
        return False
    return command.model is None or not (command.model.unknown and ARGUMENTS.search(command.model.text))
