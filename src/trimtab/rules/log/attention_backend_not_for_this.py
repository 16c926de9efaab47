"""The attention backend does not do this head size, KV type, card or model.

What it does: recognises vLLM's selection and the backends' own refusals, with their reasons.
Why it matters: A backend that was forced (--attention-backend, in old versions VLLM_ATTENTION_BACKEND) is not
    replaced; without a choice vLLM names why each one was refused.
How to fix: leave the choice to vLLM, or take back what the reason names: --kv-cache-dtype, --block-size.
When to ignore: where vLLM only warns that it takes another backend.
Sources: vllm/platforms/cuda.py (get_attn_backend_cls), vLLM 0.26; vllm/attention/backends, vLLM 0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import HUNCH, LIKELY, POSSIBLE, SURE, Hit, LogContext
from trimtab.rules.log.fixes import remove_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit, grade = found(context)
    if hit is None:
        return
    if grade == HUNCH:
        yield context.finding(hit, GUESS, HUNCH)
        return
    forced = context.facts.args.get("attention_backend")
    yield context.finding(
        hit,
        msg(
            "the attention backend cannot do this{reason}; leave the choice to vLLM or change what it names",
            zh="注意力后端不支持该配置{reason}；请由 vLLM 自动选择，或修改它指出的参数",
            reason=f": {hit.match.groupdict().get('reason')}" if hit.match.groupdict().get("reason") else "",
        ),
        grade,
        fix=remove_flag(context, "attention-backend") if forced else None,
    )


def found(context: LogContext) -> tuple[Hit | None, float]:
    """What tells it, surest first: the choice of a backend, its kernels, the card's shared memory, the place."""
    if hit := context.first(*CHOSEN):
        return hit, SURE
    if hit := context.first(*KERNELS) or context.framed(GEOMETRY):
        return hit, LIKELY
    if hit := context.first(SHARED):
        return hit, POSSIBLE
    hit = context.framed(PLACE)
    return (hit, HUNCH) if hit and context.failed and words.unnamed(hit) else (None, 0.0)


CHOSEN = (
    r"No valid attention backend found.*?Reasons: (?P<reason>.{0,300})",
    r"Selected .*?backend \S+ is not valid for this configuration\.? *(?:Reason: (?P<reason>.{0,300}))?",
    r"Head size (?P<reason>\d+ )?is not supported by|FlashAttention only supports|FlashMLA.*not "
    r"supported|requires? (?:FlashInfer|flash_attn)\b.*(?:install|not)",
    r"KV cache is not supported by the (?P<reason>.{0,300})|multiples or divisors of 16.*heads",
    r"(?i:mla|attention|attn|kv[_ ]cache)\S*.*(?:is not supported on this device|temporarily disabled "
    r"on|requires? (?:an? )?"
    r"(?:native fp8|SM\d+|fp8_ds_mla|the packed))",
    r"KV cache is not supported with (?P<with>MLA.{0,80})",
    r"No KV cache layout satisfies|attention backends share no supported KV cache block size",
    r"Invalid attention backend|(?:attention )?backend '?\w+'? (?:is|does) not support",
    r"Cannot use FA version \d+ is not supported due to (?P<reason>.{0,300})",
    r"Requires compute capability of 8 or above|No valid MLA|Cannot use FLASH\w+ backend because",
)
KERNELS = (
    r"page size(?: of the layer)? is not divisible by the\s+maximum page size|Cannot unify by adjusting block_size",
    r"KV cache layout \S+ cannot express",
    (
        r"[Uu]nsupported (?:head[ _](?:size|dim\w*)|block size|gqa ratio|number of heads|(?:NVFP4 |fp8 )?KV cache "
        r"dtype|data type of kv cache|fp8 kv cache data type)"
    ),
    r"Only FlashAttention (?:backend )?is supported|FlashAttention requires building with sm version",
    (
        r"(?:Attention|MLA|FlashInfer|Flash\w*|AttentionImpl|MLAImpl)(?: backend)? (?:currently )?(?:only supports|"
        r"does not (?:currently )?support|requires the cache block size)"
    ),
    r"cross-attention are not implemented for|Block size must be a multiple of|kv-cache is not supported with fp8",
    r"invalid argument for \w*(?:fmha|mha|mla)\w*|FlashAttention version not detected",
    r"NVFP4 KV cache requires|nvfp4 kv_cache is not supported|for cutlass_mla|Unexpected head dim size",
    r"\w*(?:[Ff]mha|FMHA|MLA|[Aa]ttention)\w*' at .{0,300}(?:Unsupported|not supported)",
    r"CUDA error \(\S*(?:flash|fmha|fwd_launch)\S*:\d+\): invalid|FlashInfer Internal Error|cutlassF: no kernel found",
)
"""What kernels and the KV cache's planning say: the backend was chosen, and meets what it does not do."""
GEOMETRY = (
    r"unify_kv_cache_spec_page_size|new_spec\.page_size_bytes|flashinfer/(?:decode|prefill|mla)\.py"
    r"|vllm_flash_attn/flash_attn_interface\.py|flash_mla_interface\.py"
)
SHARED = r"out of resource: shared memory, Required|Shared memory usage exceeds device limit"
"""Triton's kernels of attention are the ones that older cards' shared memory is too small for."""
GUESS = msg(
    "it failed in the code of the attention, so its backend is the likeliest cause, and no more than that is known: "
    "try another --attention-backend, and no --kv-cache-dtype",
    zh="错误发生在注意力的代码中，最可能的原因是注意力后端，除此之外无法确定：请尝试其他 --attention-backend，并去掉 "
    "--kv-cache-dtype",
)
PLACE = r"vllm/(?:v1/)?attention/(?!layer\.py|selector)\S+|attention/backends/|layers/(?:mla|attention/\w+)\.py"


RULE = Rule(
    code="LOG114",
    name="attention-backend-not-for-this",
    severity=Severity.ERROR,
    summary=msg(
        "The attention backend does not do this head size, KV type, card or model.",
        zh="注意力后端不支持该头维度、KV 类型、显卡或模型。",
    ),
    check=check,
    cause=Cause.ATTENTION_BACKEND_UNSUPPORTED,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/platforms/cuda.py",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/attention/selector.py",
    ),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct', 'attention_backend': 'FLASHMLA'}\n"
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [core.py:9] ValueError: Selected backend "
            "AttentionBackendEnum.FLASHMLA is not valid for this configuration. Reason: ['compute "
            "capability not supported']\n",
            at="line 3: ValueError: Selected backend",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct",
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [cuda.py:1] Using AttentionBackendEnum.FLASH_ATTN backend.\n"),),
)
