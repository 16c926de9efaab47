"""With chunked prefill off, a batch is too small for one full prompt.

What it does: where chunked prefill is off, compares --max-num-batched-tokens with the context length.
Why it matters: vLLM refuses to start, since a prompt longer than a batch could never be computed.
How to fix: raise --max-num-batched-tokens to the context length, lower --max-model-len, or leave chunked prefill on.
When to ignore: never; the check is vLLM's own and stops the start.
Sources: vllm/config/scheduler.py (verify_max_model_len), vLLM 0.11 to 0.33; vllm/config.py of vLLM 0.4 to 0.7;
    vllm/engine/arg_utils.py (_override_v1_engine_args), vLLM 0.6.6 and 0.7.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import FlagUse
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity

# vLLM 0.5 to 0.7 switch chunked prefill on by themselves above this length (arg_utils.py, use_long_context).
LONG_CONTEXT = 32768


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("max-num-batched-tokens")
    tokens = context.integer("max-num-batched-tokens")
    if use is None or tokens is None or not words.serves(context) or not may_be_off(context):
        return
    length = context.integer("max-model-len")
    if length is None:
        length = context.require_decoder().max_positions
    if tokens >= length or (not is_off(context.command.last("enable-chunked-prefill")) and length > LONG_CONTEXT):
        return
    yield Finding(
        msg(
            "chunked prefill is off, and {tokens} tokens a batch are fewer than the context of {length}",
            zh="分块预填充已关闭，而每批 {tokens} 个 token 少于上下文长度 {length}",
            tokens=tokens,
            length=length,
        ),
        use.value_span or use.span,
        context.set_value(use, str(length), Grade.UNSAFE),
    )


def is_off(use: FlagUse | None) -> bool:
    """Whether the flag says no."""
    return use is not None and (use.negated or (use.value or "").lower() == "false")


def may_be_off(context: CommandContext) -> bool:
    """Whether this version runs without chunked prefill: told so, or in the V0 engine not told otherwise.

    vLLM 0.8 to 0.10 choose the engine by the card and take no notice of the flag in V1.
    """
    use = context.command.last("enable-chunked-prefill")
    if context.at_least("0.11"):
        return is_off(use)
    if context.at_least("0.8") or uses_v1(context):
        return False
    return use is None or is_off(use)


def uses_v1(context: CommandContext) -> bool:
    """Whether the environment may choose the V1 engine, which before 0.8 always runs with chunked prefill."""
    use = context.command.env.get("VLLM_USE_V1")
    return use is not None and (use.unknown or use.value is None or use.value.strip() != "0")


RULE = Rule(
    code="CMD017",
    name="batched-tokens-below-context",
    severity=Severity.ERROR,
    summary=msg(
        "With chunked prefill off, a batch is too small for one full prompt.",
        zh="关闭分块预填充时，一批容不下一条完整的提示。",
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/scheduler.py",
        "https://github.com/vllm-project/vllm/blob/v0.7.3/vllm/config.py",
        "https://github.com/verl-project/verl/issues/7632",
    ),
    bad=(
        Example(
            "vllm serve m --no-enable-chunked-prefill --max-num-batched-tokens 8192\n",
            at="8192",
            fixed="vllm serve m --no-enable-chunked-prefill --max-num-batched-tokens 32768\n",
            vllm="0.26",
            model="qwen2.5-7b",
        ),
        Example(
            "vllm serve m --max-model-len 8192 --max-num-batched-tokens 2048\n",
            at="2048",
            fixed="vllm serve m --max-model-len 8192 --max-num-batched-tokens 8192\n",
            vllm="0.6",
        ),
    ),
    good=(
        Example("vllm serve m --max-num-batched-tokens 2048 --max-model-len 8192\n", vllm="0.26"),
        Example(
            "vllm serve m --enable-chunked-prefill --max-num-batched-tokens 512 --max-model-len 4096\n", vllm="0.6"
        ),
        Example("vllm serve m --max-num-batched-tokens 2048 --max-model-len 65536\n", vllm="0.6"),
        Example("VLLM_USE_V1=1 vllm serve m --max-num-batched-tokens 2048 --max-model-len 8192\n", vllm="0.7"),
    ),
)
