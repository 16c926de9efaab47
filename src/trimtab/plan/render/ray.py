"""vLLM on a Ray cluster: one script for the head, which serves, and for the workers.

Sources: docs/serving/parallelism_scaling.md and vllm/v1/executor/ray_utils.py, vLLM 0.33.
"""

from __future__ import annotations

from trimtab.plan.render.launch import Launch
from trimtab.plan.render.sh import serve, variables_and_flags
from trimtab.plan.render.shelltext import command_lines, exports, script

PORT = 6379
"""Ray's own port of the head."""
WAITS = "vLLM waits up to 30 minutes for all cards, gives each rank one, and keeps ranks of a machine side by side."


def render(launch: Launch) -> str:
    """A script that takes this machine's address and, on a worker, the head's."""
    variables, flags = variables_and_flags(launch)
    flags = [flag for flag in flags if not flag.startswith("--distributed-executor-backend")]
    cards = f"--num-gpus={launch.cards_per_node}" if launch.vendor != "cpu" else "--num-gpus=0"
    address = '--node-ip-address="$VLLM_HOST_IP"'
    workers = launch.nodes - 1
    return script(
        f"{launch.about} Needs Ray beside vLLM (pip install ray). On the head: sh FILE OWN_ADDRESS"
        + f"; on each of {workers} workers: sh FILE OWN_ADDRESS HEAD_ADDRESS" * bool(workers) + ".",
        ["export VLLM_HOST_IP=\"$1\"", "HEAD_ADDR=${2:-}", *variables],
        exports(launch.env),
        ['if [ -n "$HEAD_ADDR" ]; then',
         f'  exec ray start --address="$HEAD_ADDR:{PORT}" {address} {cards} --block', "fi"],
        [f"ray start --head --port={PORT} {address} {cards}", f"# {WAITS}",
         command_lines(f"exec {serve(launch)}", [*flags, "--distributed-executor-backend ray"])],
    )  # fmt: skip
