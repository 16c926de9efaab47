"""Values that vLLM's configuration refuses before it looks at a card: a budget would be of a launch that cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trimtab.facts.model import ModelFacts
from trimtab.messages import Message, msg
from trimtab.plan.memory.given import Given
from trimtab.plan.memory.settings import Settings

ONE_AND_MORE = (
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "decode_context_parallel_size",
    "prefill_context_parallel_size", "max_num_seqs", "max_num_batched_tokens", "block_size", "mamba_block_size",
    "max_loras", "max_lora_rank", "num_gpu_blocks_override", "kv_cache_memory_bytes",
)  # fmt: skip
NONE_AND_MORE = ("cpu_offload_gb", "swap_space", "kv_offloading_size")
DTYPES = frozenset({"auto", "half", "float16", "bfloat16", "float", "float32"})
CACHES = frozenset({
    "auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla", "nvfp4_ds_mla", "int8",
    "nvfp4", "nvfp4_4over6", "int4_per_token_head", "int8_per_token_head", "fp8_per_token_head", "ultraquant_4bit",
})  # fmt: skip
"""0.2 to 0.33 config/cache.py `CacheDType`, with the families below."""
SMALL_BLOCKS = (1, 8)
"""Blocks that some release or back end takes though its attention kernels want 16 (0.8.5 config.py `BlockSize`; 0.26
v1/attention/backends/flash_attn.py `get_supported_kernel_block_sizes`)."""
CACHE_FAMILIES = ("turboquant_", "octave_")


def out_of_bounds(given: Given) -> Iterator[Message]:
    """What is wrong with the flags themselves (0.33 config/cache.py, parallel.py, scheduler.py, lora.py)."""
    for name in ONE_AND_MORE:
        value = given.flags.get(name)
        if isinstance(value, int) and value < 1 and not (name == "max_num_batched_tokens" and value == -1):
            yield _span(name, value, "1 and more")
    for name in NONE_AND_MORE:
        value = given.flags.get(name)
        if isinstance(value, int | float) and value < 0:
            yield _span(name, value, "0 and more")
    drafts = given.flags.get("speculative_config")
    drafted = drafts.get("num_speculative_tokens") if isinstance(drafts, Mapping) else None
    if isinstance(drafted, int) and drafted < 1:
        yield _span("speculative_config.num_speculative_tokens", drafted, "1 and more")
    util = given.flags.get("gpu_memory_utilization")
    if isinstance(util, int | float) and not 0 < util <= 1:
        yield _span("gpu_memory_utilization", util, "above 0, up to 1")
    length = given.flags.get("max_model_len")
    if isinstance(length, int) and length < 1 and length != -1:
        yield _span("max_model_len", length, "1 and more, or -1")
    block = given.flags.get("block_size")
    if isinstance(block, int) and block >= 1 and block % 16 and block not in SMALL_BLOCKS:
        yield _span("block_size", block, "1, 8 and multiples of 16")
    for name, known in (("dtype", DTYPES), ("kv_cache_dtype", CACHES)):
        text = given.text(name)
        if text is not None and text not in known and not (known is CACHES and text.startswith(CACHE_FAMILIES)):
            yield _span(name, text, ", ".join(sorted(known)))


def context_ranks_refused(settings: Settings, model: ModelFacts) -> Message | None:
    """A context is shared by ranks that hold the same KV head: as many as there are copies of it
    (0.26 config/model.py `verify_with_parallel_config`); of a latent cache all do."""
    ranks, tensor = settings.decode_context_parallel_size, settings.tensor_parallel_size
    if ranks <= 1:
        return None
    if tensor % ranks:
        return msg("--tensor-parallel-size {tensor} does not divide by --decode-context-parallel-size {ranks}",
                   tensor=tensor, ranks=ranks)  # fmt: skip
    attention = next((x.attention for x in model.layers if x.attention), None)
    if attention is None or attention.kv_lora_rank is not None or not model.kv_heads:
        return None
    copies = tensor // model.kv_heads
    if copies < ranks:
        return msg("--decode-context-parallel-size {ranks}: each of {heads} key-value heads lies on {copies} of "
                   "{tensor} tensor ranks, and no more can share its context",
                   ranks=ranks, heads=model.kv_heads, copies=max(1, copies), tensor=tensor)  # fmt: skip
    return None


def _span(name: str, value: object, span: str) -> Message:
    return msg("--{flag} does not take {value}: {span}", flag=name.replace("_", "-"), value=str(value), span=span)
