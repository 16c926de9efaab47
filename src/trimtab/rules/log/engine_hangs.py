"""The engine lives and makes no progress.

What it does: recognises a remote call that timed out and an engine loop that does not come round.
Why it matters: A kernel or a rank waits for ever; requests hang until the time-out ends the engine.
How to fix: see with py-spy dump where the workers stand; try another attention or MoE back end, --enforce-eager,
    --disable-custom-all-reduce. The line "No available shared memory broadcast block" alone is no hang: a slow load
    or compile says it as well.
When to ignore: the broadcast line alone, while weights load or compile.
Sources: vllm/v1/executor/multiproc_executor.py (collective_rpc), vLLM 0.26; vllm/engine/async_llm_engine.py, vLLM
    0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind, Phase
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import EVERYWHERE, LIKELY, POSSIBLE, Hit, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"RPC call to (?P<method>\w+) timed out",
        r"No heartbeat received from \w+|Engine iteration timed out|one or more ranks timed out during",
        r"Engine loop .*(?:hang|stuck)",
    ) or _late_and_dead(context)
    blocks = context.find(r"No available (?:shared memory broadcast )?block found in (?P<s>\d+) second", *EVERYWHERE)
    block = next((b for b in blocks if hit or _is_no_start(b)), None)
    if hit is None and block is None:
        return
    shown = [h for h in (hit, block) if h]
    yield context.finding(
        shown,
        msg(
            "the engine stands still{method}: a kernel or a rank waits for ever",
            zh="引擎停止响应{method}：某个内核或进程一直在等待",
            method=f" ({hit.match.groupdict().get('method')})" if hit and hit.match.groupdict().get("method") else "",
        ),
        LIKELY if hit else POSSIBLE,
        severity=None if hit else Severity.WARNING,
    )


def _is_no_start(block: Hit) -> bool:
    """While a start works it says the same; before vLLM 0.12 as a warning, which alone in a text tells of no start."""
    alone = block.entry.phase is None and block.entry.kind is EntryKind.WARNING
    return alone or block.entry.phase is Phase.SERVING


def _late_and_dead(context: LogContext) -> Hit | None:
    """V0's engine dies of its own iteration's time-out, which only the traceback above the last word names."""
    late = context.first(r"^(?:asyncio\.(?:exceptions\.)?)?TimeoutError\b")
    return late if late and context.first(r"AsyncEngineDeadError: Task finished unexpectedly") else None


RULE = Rule(
    code="LOG162",
    name="engine-hangs",
    severity=Severity.ERROR,
    summary=msg("The engine lives and makes no progress.", zh="引擎仍在运行但没有进展。"),
    check=check,
    cause=Cause.HANG,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/executor/multiproc_executor.py",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/distributed/device_communicators/shm_broadcast.py",
    ),
    bad=(
        Example(
            "(APIServer pid=1) INFO:     Application startup complete.\n"
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [core.py:9] TimeoutError: RPC call to sample_tokens "
            "timed out.\n",
            at="line 2: TimeoutError",
        ),
    ),
    good=(
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:16 [shm_broadcast.py:542] No available shared memory "
            "broadcast block found in 60 seconds. This typically happens when some processes are hanging "
            "or doing some time-consuming work (e.g. compilation).\n"
        ),
    ),
)
