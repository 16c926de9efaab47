"""The number is beyond what vLLM or the machine can take.

What it does: checks utilisation, sizes, counts and ports against the bounds that vLLM's configuration sets.
Why it matters: vLLM refuses the value while it builds its configuration, or cannot listen on the port.
How to fix: write a value within the bounds; utilisation is a share from 0 to 1, not a percentage.
When to ignore: never; the bounds are vLLM's own.
Sources: vllm/config/cache.py, scheduler.py, parallel.py, model.py, lora.py of vLLM 0.33; cache.py of vLLM 0.10.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import FlagUse
from trimtab.engine.flags import FlagSpec
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity

UTILIZATION = "--gpu-memory-utilization"
# Smallest and largest value; utilisation is above, not at, its lower bound.
BOUNDS: dict[str, tuple[float, float]] = {
    UTILIZATION: (0, 1),
    "--tensor-parallel-size": (1, float("inf")),
    "--pipeline-parallel-size": (1, float("inf")),
    "--data-parallel-size": (1, float("inf")),
    "--max-num-seqs": (1, float("inf")),
    "--max-num-batched-tokens": (1, float("inf")),
    "--max-loras": (1, float("inf")),
    "--cpu-offload-gb": (0, float("inf")),
    "--swap-space": (0, float("inf")),
    "--mm-processor-cache-gb": (0, float("inf")),
    "--block-size": (1, float("inf")),
    "--port": (0, 65535),
}


def check(context: CommandContext) -> Iterator[Finding]:
    for use, spec in words.known_flags(context):
        number = number_of(use)
        if number is None:
            continue
        low, high = bounds(context, spec)
        if low <= number <= high and not (spec.name == UTILIZATION and number <= 0):
            continue
        span = msg("{low} to {high}", zh="{low} 到 {high}", low=f"{low:g}", high=f"{high:g}")
        if high == float("inf"):
            span = msg("{low} and more", zh="不小于 {low}", low=f"{low:g}")
        yield Finding(
            msg(
                "{flag} {value} is out of range: {span}",
                zh="{flag} {value} 超出范围：{span}",
                flag=use.spelling,
                value=use.value,
                span=span,
            ),
            use.value_span or use.span,
            mend(context, use, spec, number),
        )


def bounds(context: CommandContext, spec: FlagSpec) -> tuple[float, float]:
    """The flag's bounds; without any where none are known."""
    if spec.name == "--max-model-len":
        return (-1 if context.at_least("0.14") else 1), float("inf")
    return BOUNDS.get(spec.name, (float("-inf"), float("inf")))


def number_of(use: FlagUse) -> float | None:
    """The value as a number, None where it is none or not settled."""
    if use.path or use.negated or use.value is None or words.is_open(use.value, use.unknown):
        return None
    try:
        return float(use.value)
    except ValueError:
        return None


def mend(context: CommandContext, use: FlagUse, spec: FlagSpec, number: float) -> Fix | None:
    """A percentage as the share it means."""
    if spec.name != UTILIZATION or not 1 < number <= 100:
        return None
    return context.set_value(use, f"{number / 100:g}", Grade.UNSAFE) if number > 10 else None


RULE = Rule(
    code="CMD012",
    name="value-out-of-range",
    severity=Severity.ERROR,
    summary=msg("The number is beyond what vLLM can take.", zh="数值超出 vLLM 允许的范围。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/config/cache.py",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/config/scheduler.py",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/config/parallel.py",
    ),
    bad=(
        Example(
            "vllm serve m --gpu-memory-utilization 95\n",
            at="95",
            fixed="vllm serve m --gpu-memory-utilization 0.95\n",
            vllm="0.26",
        ),
        Example("vllm serve m --max-num-seqs 0\n", at="0", vllm="0.26"),
        Example("vllm serve m --port 80000\n", at="80000", vllm="0.26"),
        Example("vllm serve m --max-model-len -1\n", at="-1", vllm="0.9"),
    ),
    good=(Example("vllm serve m --gpu-memory-utilization 1.0 --max-model-len -1 --port 8000\n", vllm="0.26"),),
)
