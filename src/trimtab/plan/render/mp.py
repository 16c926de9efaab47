"""vLLM's own processes over several machines (`--nnodes`): one script, run on each.

Source: docs/serving/parallelism_scaling.md, vLLM 0.33; 0.11.2 has the flags, 0.11.0 has not.
"""

from __future__ import annotations

from trimtab.engine.flags import FlagTable
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.plan.render.launch import Launch
from trimtab.plan.render.sh import serve, variables_and_flags
from trimtab.plan.render.shelltext import command_lines, exports, script


def render(launch: Launch) -> str:
    """A script that takes this machine's number and the address of machine 0, which serves."""
    require_nnodes(launch)
    if launch.nodes < 2:
        raise UsageError(
            msg("-o mp is for several machines; this launch runs on one"),
            hint=msg("Use -o sh, or say how many machines hold the cards: --nodes 2."),
        )
    variables, flags = variables_and_flags(launch)
    node = node_flags(launch.nodes, '"$NODE_RANK"', '"$MASTER_ADDR"')
    placed = [f"{name} {value}" for name, value in zip(node[::2], node[1::2], strict=True)]
    first = f"exec {serve(launch)}"
    return script(
        f"{launch.about} On each machine: sh FILE NUMBER ADDRESS (of machine 0); numbers from 0 to {launch.nodes - 1}.",
        ["NODE_RANK=$1", "MASTER_ADDR=$2", *variables],
        exports(launch.env),
        ['if [ "$NODE_RANK" -eq 0 ]; then', "  " + command_lines(first, ["  " + f for f in [*flags, *placed]]), "fi"],
        [command_lines(first, [*flags, *placed, "--headless"])],
    )


def node_flags(nodes: int, rank: str, address: str) -> list[str]:
    """What places one machine among `nodes`."""
    return ["--nnodes", str(nodes), "--node-rank", rank, "--master-addr", address]


def require_nnodes(launch: Launch) -> None:
    """UsageError where this vLLM spreads over machines through Ray only."""
    if FlagTable.for_version(str(launch.version)).find("--nnodes") is None:
        raise UsageError(
            msg("vLLM {version} has no --nnodes", version=launch.version),
            hint=msg("Use -o ray, or vLLM 0.12 or newer."),
        )
