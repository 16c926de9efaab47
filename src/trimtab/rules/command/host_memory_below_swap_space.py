"""Swap or offloading pins more host memory than there is.

What it does: adds what --swap-space (per GPU, up to 0.17), --cpu-offload-gb (per GPU) and --kv-offloading-size pin, and
    compares the sum with the host's memory.
Why it matters: up to 0.17 vLLM refuses swap space above 70% of the memory ("Too large swap space"); offloaded weights
    and KV cache are pinned page by page until the kernel ends the process.
How to fix: lower the flag to the number in the message, or leave it out.
When to ignore: when the launch runs on another host than the one given.
Sources: vllm/config.py (CacheConfig.verify_with_parallel_config), vLLM 0.6.6 and 0.9.2; vllm/config/cache.py, 0.10.2 to
    0.17.1; v1/worker/gpu_worker.py, 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SWAP_SHARE = 0.7
SWAP_GONE_SINCE = "0.18"
FLAGS = ("swap-space", "cpu-offload-gb", "kv-offloading-size")


def check(context: CommandContext) -> Iterator[Finding]:
    given = {name: _gib(context, name) for name in FLAGS}
    if context.at_least(SWAP_GONE_SINCE):
        given["swap-space"] = 0.0
    if not any(given.values()):
        return
    host = context.require_host_gib()
    ranks = context.integer("tensor-parallel-size", 1) or 1
    for name, gib in given.items():
        per_host = 1 if name == "kv-offloading-size" else ranks
        bound = SWAP_SHARE * host if name == "swap-space" else host
        if not gib or gib * per_host <= bound:
            continue
        most = int(bound / per_host)
        yield Finding(
            msg(
                "--{flag} {gib:g} x {ranks} pins {total:g} GiB; of the host's {host:.1f} GiB {bound:.1f} may be taken; "
                "{most} fits",
                zh="--{flag} {gib:g} x {ranks} 要锁定 {total:g} GiB；主机 {host:.1f} GiB 中最多可用 {bound:.1f}；"
                "{most} 可以放下",
                flag=name,
                gib=gib,
                ranks=per_host,
                total=gib * per_host,
                host=host,
                bound=bound,
                most=most,
            ),
            context.place(name),
            context.set_flag(name, str(most)),
        )


def _gib(context: CommandContext, name: str) -> float:
    try:
        return float(context.command.get(name) or 0)
    except ValueError:
        return 0.0


RULE = Rule(
    code="CMD511",
    name="host-memory-below-swap-space",
    severity=Severity.ERROR,
    summary=msg("Swap or offloading pins more host memory than there is.", zh="交换或卸载锁定的内存超过主机内存。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.9.2/vllm/config.py",
        "https://github.com/vllm-project/vllm/blob/v0.17.1/vllm/config/cache.py",
    ),
    bad=(
        Example(
            "vllm serve m -tp 4 --swap-space 16\n",
            at="16",
            fixed="vllm serve m -tp 4 --swap-space 11\n",
            vllm="0.9.2",
            host_gib=64.0,
        ),
    ),
    good=(Example("vllm serve m -tp 4 --swap-space 4\n", vllm="0.9.2", host_gib=64.0),),
)
