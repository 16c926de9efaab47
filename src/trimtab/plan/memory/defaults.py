"""vLLM's own defaulting, by release: from the flags that were given to Settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from trimtab.facts.drafting import draft_method
from trimtab.facts.layers import Attention
from trimtab.facts.model import ModelFacts
from trimtab.facts.serving import mxfp4_padding
from trimtab.messages import Message, msg
from trimtab.plan.memory.caches import NARROW, is_packed
from trimtab.plan.memory.card import Card
from trimtab.plan.memory.given import Given
from trimtab.plan.memory.graphs import capture_sizes
from trimtab.plan.memory.runner import runner_of
from trimtab.plan.memory.settings import Engine, Settings, Usage
from trimtab.plan.memory.versions import (
    Release,
    async_scheduling_default,
    default_utilization,
    fits_length,
    hybrid_prefix_caching,
    offloads_weights,
    v1_is_default,
)


def resolve(given: Given, version: Release, model: ModelFacts, cards: Sequence[Card]) -> Settings:
    """Settings as vLLM `version` would resolve them for `model` on `cards`."""
    kv_dtype = _kv_dtype(given, version, model)
    assumed = _of_cache(kv_dtype)
    tensor = given.number("tensor_parallel_size") or 1
    pipeline = given.number("pipeline_parallel_size") or 1
    engine = _engine(given, version, cards)
    hybrid = any(x.recurrent for x in model.layers)
    longest = given.number("max_model_len")
    if longest is None or longest < 1:
        longest = model.max_positions or 2048
        if not model.max_positions:
            assumed.append(msg("a maximum length of 2,048 tokens: the model's config names none"))
    chunked = _chunked(given, version, engine, model, longest)
    seqs, tokens = _batch(given, version, engine, cards, longest, chunked, tensor * pipeline, model)
    method, drafted, draft_ranks = _speculation(given)
    prefix = given.switch("enable_prefix_caching")
    if prefix is None:
        prefix = engine == "V1" and (not hybrid or hybrid_prefix_caching(version))
    mamba_mode = _mamba_mode(given, version, model, prefix, hybrid)
    runner = runner_of(given, version, model, engine, method=method, mamba_mode=mamba_mode)
    eager = bool(given.switch("enforce_eager")) or any(c.vendor == "cpu" for c in cards)
    sizes = _sizes(given) or capture_sizes(version, seqs, tokens, 1 + drafted, model.architecture, engine=engine)
    settings = Settings(
        version=version,
        engine=engine,
        runner=runner,
        usage=given.usage,
        max_model_len=longest,
        fit_length=given.flags.get("max_model_len") == -1 and fits_length(version),
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        gpu_memory_utilization=given.real("gpu_memory_utilization", default_utilization(version)),
        dtype=_dtype(given, model, cards),
        kv_cache_dtype=kv_dtype,
        quantization=given.text("quantization"),
        tensor_parallel_size=tensor,
        pipeline_parallel_size=pipeline,
        pipeline_partition=_partition(given, pipeline, model),
        data_parallel_size=given.number("data_parallel_size") or 1,
        data_parallel_size_local=given.number("data_parallel_size_local"),
        decode_context_parallel_size=given.number("decode_context_parallel_size") or 1,
        enable_expert_parallel=bool(given.switch("enable_expert_parallel")),
        block_size=given.number("block_size") or _block_size(version, engine, model, cards, kv_dtype),
        enforce_eager=eager,
        cudagraph_capture_sizes=() if eager else sizes,
        cudagraph_mode=given.text("cudagraph_mode") or "FULL_AND_PIECEWISE",
        enable_chunked_prefill=chunked,
        enable_prefix_caching=prefix,
        speculative_method=method,
        num_speculative_tokens=drafted,
        draft_tensor_parallel_size=draft_ranks,
        disable_hybrid_kv_cache_manager=bool(given.switch("disable_hybrid_kv_cache_manager")),
        async_scheduling=_async(given, version, pipeline, method),
        mamba_cache_mode=mamba_mode,
        ssm_bytes=_ssm_bytes(given, model),
        mamba_block_size=given.number("mamba_block_size"),
        assumed=tuple(assumed),
    )
    return _with_cards(given, _with_sizes(given, settings), cards, model.architecture)


def _of_cache(kv_dtype: str) -> list[Message]:
    if not kv_dtype.startswith(NARROW):
        return []
    return [msg("--kv-cache-dtype {name} as 8 bit, the most it can be", name=kv_dtype)]


def _with_cards(given: Given, settings: Settings, cards: Sequence[Card], architecture: str) -> Settings:
    """What the cards' kernels decide."""
    version = settings.version
    flashinfer = version >= (0, 11, 1) and bool(cards) and all(c.vendor == "nvidia" for c in cards)
    hopper = bool(cards) and all(9.0 <= c.capability < 10.0 and c.vendor == "nvidia" for c in cards)
    asked = given.env.get("VLLM_USE_FLASHINFER_SAMPLER")
    return replace(
        settings,
        estimate_graphs=_estimates(given, version, cards),
        estimate_asked=given.env.get("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS") == "1",
        deep_gemm=all(9.0 <= c.capability < 12.0 and c.vendor == "nvidia" for c in cards),
        hopper=hopper,
        mxfp4_tile=_mxfp4_tile(version, cards),
        swizzled_scales=hopper and version >= (0, 12) and architecture == "GptOssForCausalLM",
        unified=any(c.unified and c.vendor == "nvidia" for c in cards),
        multicast=bool(cards) and all(_on_switch(c) for c in cards),
        nccl_reduces=settings.tensor_parallel_size > 2 and not all(c.nvlink and c.name not in BRIDGED for c in cards),
        capability=min((c.capability for c in cards), default=8.0),
        flashinfer=flashinfer,
        flashinfer_sampler=flashinfer and (asked == "1" or (asked != "0" and version >= (0, 21))),
    )


BRIDGED = ("A100 PCIe", "A30", "A40", "H100 NVL")
"""Cards whose bridges join pairs: vLLM's own all-reduce wants each of more than two linked to each
(custom_all_reduce.py `is_fully_connected`)."""


def _on_switch(card: Card) -> bool:
    """H100 NVL and H200 NVL are joined by bridges alone."""
    return card.vendor == "nvidia" and card.nvlink and card.capability >= 9.0 and not card.name.endswith(" NVL")


def _with_sizes(given: Given, settings: Settings) -> Settings:
    """The sizes that flags set outright, and what else is loaded beside the decoder."""
    return replace(
        settings,
        cpu_offload_gb=given.real("cpu_offload_gb", 0.0)
        if offloads_weights(settings.version, settings.runner)
        else 0.0,
        swap_space=given.real("swap_space", 4.0 if settings.engine == "V0" else 0.0),
        kv_offloading_size=given.real("kv_offloading_size", 0.0),
        kv_cache_memory_bytes=given.number("kv_cache_memory_bytes"),
        num_gpu_blocks_override=given.number("num_gpu_blocks_override"),
        max_loras=(given.number("max_loras") or 1) if given.switch("enable_lora") else 0,
        max_lora_rank=given.number("max_lora_rank") or 16,
        encoder=not given.switch("language_model_only"),
        profile_encoder=not given.switch("skip_mm_profiling"),
        cpu_kvcache_space_gib=_cpu_space(given),
    )


def _engine(given: Given, version: Release, cards: Sequence[Card]) -> Engine:
    asked = given.env.get("VLLM_USE_V1")
    if asked in ("0", "1") and (0, 7) <= version < (0, 11):
        return "V1" if asked == "1" else "V0"
    capability = min((c.capability for c in cards), default=8.0)
    return "V1" if v1_is_default(version, capability) else "V0"


def _chunked(given: Given, version: Release, engine: Engine, model: ModelFacts, longest: int) -> bool:
    """V1: on. V0: off, but from 0.5.4 on by itself above 32,768 tokens (engine/arg_utils.py), not for sliding-window or
    multimodal models, MLA, LoRA or drafts; up to 0.5 nor with prefix caching."""
    asked = given.switch("enable_chunked_prefill")
    if engine == "V1":
        return asked is not False
    if asked is not None:
        return asked
    attention = next((x.attention for x in model.layers if x.attention), None)
    plain = attention is not None and attention.window is None and not model.towers
    if given.switch("enable_lora") or given.flags.get("speculative_config") is not None:
        return False
    if version < (0, 6) and given.switch("enable_prefix_caching"):
        return False
    return version >= (0, 5, 4) and longest > 32768 and plain and (version < (0, 7) or _plain_mla(attention))


def _plain_mla(attention: Attention | None) -> bool:
    return attention is not None and attention.kv_lora_rank is None


def _batch(
    given: Given,
    version: Release,
    engine: Engine,
    cards: Sequence[Card],
    longest: int,
    chunked: bool,
    world: int,
    model: ModelFacts,
) -> tuple[int, int]:
    """max_num_seqs, max_num_batched_tokens (engine/arg_utils.py `get_batch_defaults`; V0: config.py)."""
    if engine == "V0":
        seqs, tokens = 256, _v0_tokens(version, longest, chunked, bool(model.towers))
    else:
        seqs, tokens = _v1_defaults(version, cards, given.usage, world)
        if not chunked:
            tokens = max(tokens, longest)
    asked_seqs, asked_tokens = given.number("max_num_seqs"), given.number("max_num_batched_tokens")
    seqs = asked_seqs or seqs
    if asked_tokens:
        tokens = asked_tokens
    elif engine == "V1":
        tokens = min(tokens, seqs * longest)
    return (seqs if asked_seqs else min(seqs, tokens)), tokens


def _v0_tokens(version: Release, longest: int, chunked: bool, multimodal: bool) -> int:
    if chunked:
        return 512 if version < (0, 6, 5) else 2048
    tokens = max(longest, 2048)
    return max(tokens, 5120) if multimodal and version >= (0, 7) else max(tokens, 4096) if multimodal else tokens


def _v1_defaults(version: Release, cards: Sequence[Card], usage: Usage, world: int) -> tuple[int, int]:
    """By the card's memory as NVML tells it; where CPU and GPU share it NVML tells none, as of a small card.
    Up to 0.8.3 small cards too took 1,024 sequences (#16158)."""
    card = cards[0] if cards else Card("", 24.0)
    if card.vendor == "cpu":
        wide = world if version >= (0, 10) else 1
        return (256 * wide, 4096 * wide) if usage == "llm" else (128 * wide, 2048 * wide)
    small_a100 = "a100" in card.name.lower() and version >= (0, 9)
    if version >= (0, 28) and card.total_gib >= 160 and not card.unified:
        return 1024, 16384
    if card.total_gib >= 70 and not small_a100 and not card.unified:
        return 1024, 16384 if usage == "llm" else 8192
    return 1024 if version < (0, 8, 4) else 256, 8192 if usage == "llm" else 2048


def _speculation(given: Given) -> tuple[str | None, int, int | None]:
    """The method, the tokens it drafts, and the tensor ranks asked for the draft."""
    config = given.flags.get("speculative_config")
    if not isinstance(config, Mapping):
        return None, 0, None
    method, model = config.get("method"), config.get("model")
    number, ranks = config.get("num_speculative_tokens"), config.get("draft_tensor_parallel_size")
    found = draft_method(method if isinstance(method, str) else None, model if isinstance(model, str) else None)
    return found, number if isinstance(number, int) else 0, ranks if isinstance(ranks, int) else None


def _sizes(given: Given) -> tuple[int, ...]:
    sizes = given.flags.get("cudagraph_capture_sizes")
    if isinstance(sizes, list | tuple):
        return tuple(sorted({n for n in sizes if isinstance(n, int)}))
    return ()


def _dtype(given: Given, model: ModelFacts, cards: Sequence[Card]) -> str:
    asked = given.text("dtype")
    if asked and asked != "auto":
        return {"half": "float16", "float": "float32"}.get(asked, asked)
    return "float16" if model.dtype == "bfloat16" and any(c.capability < 8.0 for c in cards) else model.dtype


def _kv_dtype(given: Given, version: Release, model: ModelFacts) -> str:
    """`auto` follows a checkpoint's own KV scheme from 0.14 on (config/model.py, utils/torch_utils.py)."""
    asked = given.text("kv_cache_dtype") or "auto"
    if asked == "auto" and is_packed(model.layers):
        return "fp8"
    if asked == "auto" and model.quantisation and model.quantisation.kv_scheme == "fp8" and version >= (0, 14):
        return "fp8"
    return asked


def _block_size(version: Release, engine: Engine, model: ModelFacts, cards: Sequence[Card], kv_dtype: str) -> int:
    """16 tokens; what MLA's kernels ask for; 128 on the CPU (platforms/cuda.py, cpu.py and each backend's sizes).

    FlashMLA 64 (Hopper up to 0.11, fp8 caches, sparse MLA), MiniMax M3's sparse attention 128, CUTLASS MLA 128
    (Blackwell, 0.10 to 0.16), FlashInfer MLA 32 (Blackwell, later).
    """
    if cards and cards[0].vendor == "cpu":
        return 128 if version >= (0, 12) else 16
    attention = next((x.attention for x in model.layers if x.attention), None)
    if is_packed(model.layers):
        return 256
    if any(x.attention and x.attention.indexer and x.attention.indexer.element == "kv" for x in model.layers):
        return 128
    if attention is None or attention.kv_lora_rank is None or engine == "V0" or not cards:
        return 16
    if attention.indexer is not None:
        return 64
    capability = cards[0].capability
    if version >= (0, 10) and 10.0 <= capability < 12.0:
        return 128 if version < (0, 17) else 32
    hopper = 9.0 <= capability < 10.0
    return 64 if hopper and (version < (0, 12) or kv_dtype.startswith("fp8")) else 16


def _async(given: Given, version: Release, pipeline: int, method: str | None) -> bool:
    asked = given.switch("async_scheduling")
    if asked is not None:
        return asked
    return async_scheduling_default(version)


MAMBA_PREFIX_CACHING = ("Bamba", "FalconH1", "GraniteMoeHybrid", "NemotronH", "Zamba2", "Jamba", "Mamba")
"""Architectures that keep the state of every block under prefix caching (0.26, `SupportsMambaPrefixCaching`)."""


def _mamba_mode(given: Given, version: Release, model: ModelFacts, prefix: bool, hybrid: bool) -> str:
    """ "all" keeps a state per block, "align" two per sequence, "none" one (models/config.py MambaModelConfig)."""
    asked = given.text("mamba_cache_mode")
    if not hybrid or not prefix:
        return "none"
    if version < (0, 14):
        return "none"
    if asked and asked != "none":
        return asked
    caches_all = model.architecture.startswith(MAMBA_PREFIX_CACHING) and version < (0, 33)
    return "all" if caches_all else "align"


def _ssm_bytes(given: Given, model: ModelFacts) -> int | None:
    """Bytes of a number in the recurrent state where a flag or NemotronH's own default says (models/config.py)."""
    asked = given.text("mamba_ssm_cache_dtype") or "auto"
    if asked == "auto":
        return 4 if model.architecture.startswith("NemotronH") else None
    return 4 if asked == "float32" else 2


def _mxfp4_tile(version: Release, cards: Sequence[Card]) -> tuple[int, int]:
    card = min(cards, key=lambda c: c.capability, default=Card("", 24.0))
    capability = None if card.vendor == "cpu" else (int(card.capability), round(card.capability * 10) % 10)
    vendor = "AMD" if card.vendor == "amd" else "NVIDIA"
    return mxfp4_padding(capability, (version.major, version.minor), vendor=vendor)


def _estimates(given: Given, version: Release, cards: Sequence[Card]) -> bool:
    """Graphs are estimated unless the environment says no; on ROCm from 0.26, elsewhere than CUDA never."""
    if given.env.get("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "1") == "0":
        return False
    return all(c.vendor == "nvidia" or (c.vendor == "amd" and version >= (0, 26)) for c in cards)


def _partition(given: Given, pipeline: int, model: ModelFacts) -> tuple[int, ...]:
    """VLLM_PP_LAYER_PARTITION ("16,32"), when it names as many layers as there are."""
    words = given.env.get("VLLM_PP_LAYER_PARTITION", "").split(",")
    sizes = tuple(int(w) for w in words if w.strip().isdecimal() and len(w) < 18)
    return sizes if len(sizes) == pipeline and sum(sizes) == model.num_layers else ()


def _cpu_space(given: Given) -> float | None:
    """GiB of VLLM_CPU_KVCACHE_SPACE; None when it is unset, 0 or no number."""
    try:
        return float(given.env.get("VLLM_CPU_KVCACHE_SPACE", "")) or None
    except ValueError:
        return None
