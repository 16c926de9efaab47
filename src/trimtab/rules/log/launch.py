"""The launch command and the cards, rebuilt from what a log tells of them. Not a rule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from trimtab.engine.command import LaunchCommand
from trimtab.engine.flags import FlagTable
from trimtab.engine.logs import LogFacts
from trimtab.errors import UsageError

if TYPE_CHECKING:
    from trimtab.facts.gpu import GpuSet

_NOT_FLAGS = ("model", "model_tag", "subparser", "dispatch_function", "config", "headless", "api_key")


def launch_of(facts: LogFacts) -> LaunchCommand | None:
    """`vllm serve MODEL --flag value ...` as the log's own arguments tell it; None where it tells none."""
    if not facts.args or facts.model is None:
        return None
    table = FlagTable.for_version(facts.version) if facts.version else None
    words = ["vllm", "serve", facts.model]
    for name, value in facts.args.items():
        flag = name.replace("_", "-")
        if name in _NOT_FLAGS or value is None or (table is not None and table.find(f"--{flag}") is None):
            continue
        if (facts.all_args or value is False) and (table is None or _is_default(table, flag, value)):
            continue
        words += _spelt(flag, value)
    return LaunchCommand.from_argv(words)


def _is_default(table: FlagTable, flag: str, value: object) -> bool:
    spec = table.find(f"--{flag}")
    return spec is None or spec.default is None or str(spec.default) == str(value)


def _spelt(flag: str, value: object) -> list[str]:
    match value:
        case True:
            return [f"--{flag}"]
        case False:
            return [f"--no-{flag}"]
        case dict():
            return [f"--{flag}", json.dumps(value, default=str)]
        case list() | tuple():
            return [f"--{flag}", *map(str, value)] if value else []
    text = str(value)
    return [f"--{flag}={text}"] if text.startswith("-") else [f"--{flag}", text]


def ranks_of(command: LaunchCommand) -> int:
    """How many cards the launch takes."""
    ranks = 1
    for flag in ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size"):
        value = command.get(flag)
        ranks *= int(value) if value and value.isdecimal() else 1
    return max(ranks, 1)


def cards_of(facts: LogFacts) -> GpuSet | None:
    """As many cards as the launch has ranks, of the kind or at least the memory that the log tells."""
    from trimtab.facts.gpu import cpu, parse_gpus

    total = facts.numbers.get("total_gib")
    if facts.engine.get("device_config", "").startswith("cpu"):
        return cpu(total) if total else None
    ranks = 1
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        value = str(facts.args.get(name) or facts.engine.get(name) or 1)
        ranks *= int(value) if value.isdecimal() else 1
    for card in (facts.device, f"{total:g}GiB" if total else None):
        try:
            if card is not None:
                return parse_gpus(f"{ranks}x{card}")
        except UsageError:
            continue
    return None
