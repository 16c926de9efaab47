"""An option or model works only on another generation of the engine.

What it does: reads refusals that name V0, V1 or the V2 model runner, and calls that only the other generation's
    worker has.
Why it matters: vLLM carried two engines from 0.7 to 0.10 and carries two model runners since 0.2x; what one lacks
    ends the start, or is downgraded in silence.
How to fix: leave the option out; up to 0.10 VLLM_USE_V1=0 chose the older engine, and VLLM_USE_V2_MODEL_RUNNER=0
    chooses the older runner in versions that have both.
When to ignore: when the line says that it fell back and the older engine is what you want.
Sources: vllm/engine/arg_utils.py (_raise_or_fallback), vLLM 0.8 to 0.10; vllm/config/vllm.py, vLLM 0.23 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import EVERYWHERE, LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"VLLM_USE_V1=[01] is not supported(?!  *with)|V0 (?:engine )?(?:has been|is) (?:removed|deprecated and)",
    r"VLLM_USE_V1=1 is not supported with (?P<what>.+?)\.?$",
    r"(?P<what>--[\w-]+.{0,60}) is not supported by the V1 Engine",
    r"Model Runner V2 (?:does not yet support: (?P<what>.+)|requires .+)",
    (
        r"(?:only|not) supported (?:on|in|by|for|with) (?:the )?V[01]\b|only supports V[01]\b|V[01] (?:is|does) "
        r"not (?:support|enabled)"
    ),
    (
        r"(?:[Tt]ry (?:set(?:ting)?) '?VLLM_USE_V1=[01]|please use V[01]\b|when using V0\b|To run the model in V0 "
        r"engine)"
    ),
    r"(?:not|isn't) (?:yet )?supported (?:in|by|on) V[01](?: Engine)?|not supported in V[01] currently",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is not None:
        message = msg(
            "this works only on another generation of the engine: {said}",
            zh="此功能只在另一代引擎上可用：{said}",
            said=words.said(hit),
        )
        yield context.finding(hit, message, SURE)
        return
    hit = context.first(*SAYS[2:3], kinds=EVERYWHERE)
    if hit is not None:
        message = msg(
            "{what} made vLLM fall back to its older engine", zh="{what} 使 vLLM 退回旧引擎", what=hit["what"].strip()
        )
        yield context.finding(hit, message, SURE, severity=Severity.WARNING)
        return
    hit = context.framed(OLD_WORKER) or context.first(OLD_WORKER)
    if hit is not None and context.first(r"^NotImplementedError"):
        message = msg(
            "engine and worker are of different generations: {said}",
            zh="引擎与 worker 不是同一代：{said}",
            said=hit.match.string[:200],
        )
        yield context.finding(hit, message, LIKELY)


OLD_WORKER = (
    r"worker_base\.py.* in (?:determine_num_available_blocks|determine_available_memory|init_device|load_model)"
)


RULE = Rule(
    code="LOG313",
    name="engine-generation",
    severity=Severity.ERROR,
    summary=msg(
        "An option or model works only on another generation of the engine.", zh="某个选项或模型只在另一代引擎上可用。"
    ),
    check=check,
    cause=Cause.ENGINE_GENERATION,
    sources=("https://github.com/vllm-project/vllm/blob/v0.8.5/vllm/engine/arg_utils.py",),
    bad=(
        Example("NotImplementedError: VLLM_USE_V1=1 is not supported with --kv-cache-dtype.\n"),
        Example(
            "WARNING 11-30 03:43:16 [arg_utils.py:1] --enable-prompt-embeds is not supported by the V1 "
            "Engine. Falling back to V0. \n"
        ),
        Example("ValueError: Model Runner V2 does not yet support: prompt embeds\n"),
    ),
    good=(
        Example(
            "WARNING 11-30 03:43:16 [vllm.py:725] Model Runner V2 requires Triton; using the V1 model runner instead.\n"
        ),
    ),
)
