"""--max-model-len is above what the model's config allows.

What it does: reads the length asked for and the one derived from config.json, in the wordings of all versions.
Why it matters: positions beyond those the model was trained for give nonsense or errors of CUDA; vLLM refuses them.
How to fix: give at most the derived length. For a model whose card names longer contexts set its rope scaling
    (--hf-overrides, --rope-scaling before 0.12). VLLM_ALLOW_LONG_MAX_MODEL_LEN only switches the check off.
When to ignore: never; the server did not start.
Sources: vllm/config/model.py (_get_and_verify_max_len), vllm/config.py, vLLM 0.2 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (
        r"User-specified max_model_len \((?P<wanted>[\d.]+)\) is greater than the derived max_model_len "
        r"\((?P<key>\w*)[^=)]*=(?P<limit>[\d.]+)"
    ),
    (
        r"max_model_len \((?P<wanted>[\d.]+)\) (?:is|must be) .{0,60}(?:max_position_embeddings|"
        r"model_max_length)\D{0,20}(?P<limit>\d+)"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        return
    wanted, limit = int(hit.number("wanted")), int(hit.number("limit"))
    message = msg(
        "--max-model-len {wanted:,} is above the {limit:,} tokens of the model's config",
        zh="--max-model-len {wanted:,} 超过模型配置的 {limit:,} 个 token",
        wanted=wanted,
        limit=limit,
    )
    yield context.finding(hit, message, SURE, fix=set_flag(context, "max-model-len", str(limit)))


RULE = Rule(
    code="LOG104",
    name="context-above-the-model-s",
    severity=Severity.ERROR,
    summary=msg(
        "--max-model-len is above what the model's config allows.", zh="--max-model-len 超过模型配置允许的长度。"
    ),
    check=check,
    cause=Cause.CONTEXT_ABOVE_MODEL_LIMIT,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/model.py",),
    bad=(
        Example(
            "ValueError: User-specified max_model_len (131072) is greater than the derived max_model_len "
            "(max_position_embeddings=32768 or model_max_length=None in model's config.json). This may lead "
            "to incorrect model outputs or CUDA errors.\n"
        ),
        Example(
            "ValueError: User-specified max_model_len (131072) is greater than the derived max_model_len "
            "(None=8192 in model's config.json). This may lead to incorrect model outputs.\n"
        ),
        Example(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
            "  Value error, User-specified max_model_len (100000) is greater than the derived max_model_len "
            "(max_position_embeddings=8192.0 or model_max_length=None in model's config.json). To allow "
            "overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.\n"
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [model.py:2152] Using max model len 512\n"),),
)
