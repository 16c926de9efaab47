"""--max-model-len is longer than the model's positions reach.

What it does: compares --max-model-len with the length that vLLM derives from the model's config: the smallest of its
    position limits, times the factor of its rope scaling.
Why it matters: vLLM refuses to start ("User-specified max_model_len is greater than the derived max_model_len").
How to fix: ask for no more than the model has, or give rope scaling in --hf-overrides (--rope-scaling before 0.12).
When to ignore: when VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 comes from outside the command and the model's card allows it.
Sources: vllm/config/model.py (_get_and_verify_max_len), vLLM 0.15 and 0.33; vllm/config.py of 0.3.0, 0.4.2, 0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity

OVERRIDES = ("hf-overrides", "rope-scaling", "rope-theta", "hf-config-path")
HEEDS_MODEL_MAX_LENGTH_SINCE = "0.4"


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("max-model-len")
    asked = context.size("max-model-len")
    if use is None or asked is None or _overridden(context):
        return
    model = context.require_config()
    declared = context.at_least(HEEDS_MODEL_MAX_LENGTH_SINCE)
    derived = model.max_positions if declared or model.rope_scaling else model.shortest_positions
    if not derived or asked <= derived:
        return
    yield Finding(
        msg(
            "{asked:,} tokens are more than the {derived:,} that the model's config allows",
            zh="{asked:,} 个 token 超过了模型配置允许的 {derived:,}",
            asked=asked,
            derived=derived,
        ),
        use.value_span or use.span,
        context.set_value(use, str(derived), Grade.UNSAFE),
    )


def _overridden(context: CommandContext) -> bool:
    if any(flag.name in OVERRIDES for flag in context.command.flags):
        return True
    allowed = context.command.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN")
    return allowed is not None and (allowed.value or "1").lower() in ("1", "true")


RULE = Rule(
    code="CMD301",
    name="context-beyond-model",
    severity=Severity.ERROR,
    summary=msg(
        "--max-model-len is longer than the model's positions reach.",
        zh="--max-model-len 超过了模型支持的最大长度。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/config/model.py",),
    bad=(
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 65536\n",
            at="65536",
            fixed="vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 32768\n",
            model="qwen2.5-7b",
        ),
    ),
    good=(
        Example("vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 32k\n", model="qwen2.5-7b"),
        Example(
            "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 65536\n",
            model="qwen2.5-7b",
        ),
    ),
)
