"""Whether this host has a place for every rank of a launch, said before anything is started."""

from __future__ import annotations

import os

from trimtab.engine.command import LaunchCommand
from trimtab.errors import HostError
from trimtab.facts.probe.host import cpu_rank_nodes
from trimtab.messages import msg
from trimtab.plan.ranks import Ranks, ranks_of


def require_room(command: LaunchCommand, gpus: int, *, on_cpu: bool) -> int:
    """How many of `gpus` cards the launch takes: 0 on a CPU. HostError with both numbers when it is too few."""
    ranks = ranks_of(command)
    if on_cpu:
        _require_nodes(command, ranks)
        return 0
    if ranks.here is None:
        return gpus
    if ranks.here > gpus:
        raise HostError(
            msg("{flags} needs {need} GPUs; {have} may be used here", flags=ranks.flags, need=ranks.here, have=gpus),
            hint=msg("Lower the sizes, or run it on a host with {need} GPUs.", need=ranks.here),
        )
    return ranks.here


def _require_nodes(command: LaunchCommand, ranks: Ranks) -> None:
    own = {name: use.value for name, use in command.env.items() if use.value is not None}
    nodes = cpu_rank_nodes({**os.environ, **own})
    if nodes is not None and (ranks.here or 1) > len(nodes):
        raise HostError(
            msg(
                "{flags} needs {need} NUMA nodes, one for each rank on a CPU; this host has {have}",
                flags=ranks.flags, need=ranks.here, have=len(nodes),
            ),
            hint=msg("Leave the parallel sizes out: one rank uses all cores of its node."),
        )  # fmt: skip
