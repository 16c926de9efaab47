"""How many ranks of a launch run on one host: each takes a GPU, or on vLLM's CPU back end a NUMA node."""

from __future__ import annotations

import msgspec

from trimtab.engine.command import LaunchCommand
from trimtab.engine.quantities import whole, wrong_value

SIZES = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size")
_ONE_REPLICA_HERE = ("data-parallel-rank", "data-parallel-external-lb")


class Ranks(msgspec.Struct, frozen=True):
    """`here`: ranks that this host starts; None where Ray places them. `flags`: what was said of it, as written."""

    here: int | None
    flags: str


def ranks_of(command: LaunchCommand) -> Ranks:
    """The ranks of `command` (vllm/config/parallel.py 0.32, world_size and its like).

    UsageError for a size that is no number or below 1.
    """
    tensor, pipeline, data = (_size(command, name) for name in SIZES)
    said = " ".join(f"--{name} {command.get(name)}" for name in SIZES if command.get(name))
    if "ray" in (command.get("distributed-executor-backend"), command.get("data-parallel-backend")):
        return Ranks(None, said)
    if any(command.has(name) for name in _ONE_REPLICA_HERE):
        data = 1
    elif command.get("data-parallel-size-local"):
        data = _size(command, "data-parallel-size-local")
    return Ranks(-(-tensor * pipeline // _size(command, "nnodes")) * data, said)


def _size(command: LaunchCommand, name: str) -> int:
    text = command.get(name)
    if text is None:
        return 1
    found = whole(name, text)
    if found < 1:
        raise wrong_value(name, text)
    return found
