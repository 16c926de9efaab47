"""CUDA graphs: which sizes are captured, what capturing takes, and the estimate that vLLM deducts beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.facts.derived import Derived
from trimtab.facts.layers import Attention, LayerFacts
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.allocator import GIB, MIB
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import Release, deducts_graphs, graphs_for_full_and_piecewise
from trimtab.plan.parallel import Stage

LAYER_BYTES = int(0.19 * MIB)
"""What the driver keeps per layer and graph where all graphs are of one kind (before 0.11)."""
NCCL_LAYER_BYTES = int(0.37 * MIB)
"""The same of NCCL's two all-reduces a layer, where it carries them: a start of 0.10.2 with 8 x L40S took 3.45 GiB."""
PIECE_BYTES = int(0.143 * MIB)
"""Per layer and piecewise graph: 4 MiB for 28 layers, 6 for 48 in the trial captures of 0.26."""
WHOLE_BYTES = {"v1": int(0.04 * MIB), "v2": int(0.09 * MIB)}
"""Per layer and whole-model graph: 1 MiB for 28 layers, 2 for 48 with the V1 runner; the V2 runner takes twice that.
Measured on Hopper; elsewhere a whole-model graph takes as much as a piecewise one."""
UNIFIED_BYTES = int(0.25 * MIB)
"""Per layer and graph of either kind where the host's part of a graph comes out of the same memory: six estimates of
0.30 on GB10 lie between 0.11 and 0.32."""
STREAM_BYTES = 32 * MIB
"""cuBLAS's workspace for one more stream on Hopper: shared experts run beside the others on their own."""
WORKSPACE_BYTES = 75 * MIB
"""cuBLAS workspaces of the capture's pool, whatever is captured (0.26 on H200)."""
FLASHINFER_BYTES = 394 * MIB
"""Workspace of FlashInfer's attention (0.11.2 to 0.30 envs.py `VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE`)."""
SPLITS = 32
"""FlashAttention 3 on Hopper gives whole-model graphs room for so many partial results (envs.py
`VLLM_FLASH_ATTN_MAX_NUM_SPLITS_FOR_CUDA_GRAPH`), fp32, a batch of the largest size: 112 MiB for Qwen2.5-7B at 256."""


def capture_sizes(
    version: Release,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    queries: int = 1,
    architecture: str = "",
    *,
    engine: str = "V1",
) -> tuple[int, ...]:
    """Batch sizes captured by default.

    From 0.11.1: 1, 2, 4, then by 8 to 256, then by 16 up to min(2 x sequences x queries, 512) (0.26 config/vllm.py
    `_set_cudagraph_sizes`), for gpt-oss up to 1,024 whatever the sequences (0.12 to 0.33 models/config.py
    `GptOssForCausalLMConfig`); before, 1, 2, 4 and by 8 up to 512,
    whatever the sequences; V0 up to the first size that holds them, 256 at most before 0.6.4 (0.5.5
    worker/model_runner.py, 0.6.6 to 0.9.2 config.py). V0's sizes above 512 are left out: a start of 0.6.5 with 4,096
    sequences had less left for all of them than a share for each by LAYER_BYTES would take.
    """
    if version >= (0, 12):
        most = min(max_num_seqs * queries * 2, 512, max_num_batched_tokens)
        if architecture == "GptOssForCausalLM":
            most = min(1024, max_num_batched_tokens)
        sizes = [n for n in (1, 2, 4) if n <= most]
        sizes += range(8, min(most + 1, 256), 8)
        sizes += range(256, most + 1, 16)
        return tuple(sizes)
    if engine == "V1":
        return (1, 2, 4, *range(8, min(512, max_num_batched_tokens) + 1, 8))
    possible = (1, 2, 4, *range(8, 513 if version >= (0, 6, 4) else 257, 8))
    return possible[: sum(n < max_num_seqs for n in possible) + 1]


def graph_memory(settings: Settings, model: ModelFacts, stage: Stage) -> Derived[float]:
    """GiB that capture takes after the KV cache is there; 0 when nothing is captured."""
    sizes = settings.cudagraph_capture_sizes
    if not settings.graphs or not sizes:
        return Derived(0.0, "GiB", "no CUDA graphs", "computed")
    layers = model.layers[stage.start : stage.end]
    piecewise, whole = graph_counts(settings, layers)
    first, splits = _first_captures(settings, model, stage)
    value = (first + splits + _driver_bytes(settings, model, stage)) / GIB
    return Derived(
        value,
        "GiB",
        "workspace + largest batch's layer buffers + partial attention results + graphs x layers",
        "assumed",
        {"piecewise": piecewise, "whole": whole, "largest": max(sizes), "layers": stage.layers},
        note="vLLM v1/worker/gpu_model_runner.py capture_model; measured with 0.26 on H200",
    )


def _first_captures(settings: Settings, model: ModelFacts, stage: Stage) -> tuple[int, int]:
    """Bytes of the first piecewise capture and of the first whole-model one: what later, smaller ones use again."""
    sizes = settings.cudagraph_capture_sizes
    layers = model.layers[stage.start : stage.end]
    inner = max((x.moe.shared_intermediate if x.moe else x.intermediate for x in layers), default=0)
    width = 3 * inner // settings.tensor_parallel_size + 4 * model.hidden_size
    pool = max(sizes) * width * model.element_bytes
    if not graphs_for_full_and_piecewise(settings.version):
        return pool, 0
    largest = (
        max((n for n in sizes if n <= _decode_batch(settings)), default=0) if graph_counts(settings, layers)[1] else 0
    )
    width = max((_output_width(x.attention) for x in layers if x.attention), default=0) // settings.tensor_parallel_size
    streams = WORKSPACE_BYTES + (STREAM_BYTES if _shared_experts(settings, layers) else 0)
    return streams + pool, SPLITS * width * largest * 4 if settings.hopper else _flashinfer(settings, layers, largest)


def _shared_experts(settings: Settings, layers: Sequence[LayerFacts]) -> bool:
    """Whether a second stream is captured (0.26 fused_moe/runner/shared_experts.py); the first capture that sees it
    makes its workspace: 32 MiB more with DeepSeek-V2-Lite and Qwen3-Next than without shared experts, on H200."""
    return settings.hopper and any(x.moe and x.moe.shared_intermediate for x in layers)


def _flashinfer(settings: Settings, layers: Sequence[LayerFacts], largest: int) -> int:
    """FlashInfer's buffer, made when the first whole-model graph is captured."""
    return FLASHINFER_BYTES if largest and _attends_by_flashinfer(settings, layers) else 0


def _attends_by_flashinfer(settings: Settings, layers: Sequence[LayerFacts]) -> bool:
    """By default on data-centre Blackwell, and with an fp8 cache on cards that FlashAttention 3 does not run on
    (0.11.2 to 0.30 platforms/cuda.py `_get_backend_priorities`, flash_attn.py `supports_kv_cache_dtype`)."""
    if not settings.flashinfer or settings.hopper:
        return False
    plain = any(x.attention is not None and x.attention.kv_lora_rank is None for x in layers)
    return plain and (10.0 <= settings.capability < 11.0 or settings.kv_cache_dtype.startswith("fp8"))


def _output_width(mixer: Attention) -> int:
    """Elements a token of the decode kernel's output; MLA decodes in its latent space."""
    return mixer.heads * (mixer.kv_lora_rank or mixer.v_head_dim)


def _driver_bytes(settings: Settings, model: ModelFacts, stage: Stage) -> int:
    piecewise, whole = graph_counts(settings, model.layers[stage.start : stage.end])
    if settings.max_loras and settings.version >= (0, 12):  # each size twice: without adapters and with them
        piecewise, whole = 2 * piecewise, 2 * whole
    if not graphs_for_full_and_piecewise(settings.version):
        each = LAYER_BYTES + (NCCL_LAYER_BYTES if settings.nccl_reduces else 0)
        return (piecewise + whole) * stage.layers * each
    if settings.unified:
        return stage.layers * (piecewise + whole) * UNIFIED_BYTES
    each = WHOLE_BYTES[settings.runner] if settings.hopper else PIECE_BYTES
    return stage.layers * (piecewise * PIECE_BYTES + whole * each)


def graph_counts(settings: Settings, layers: Sequence[LayerFacts]) -> tuple[int, int]:
    """Piecewise graphs, one a size, and from 0.11 whole-model ones for sizes that a decode batch can have.

    Beside drafts FlashInfer has whole-model graphs with TensorRT-LLM's kernels alone, those of data-centre Blackwell
    (0.20 flashinfer.py `get_cudagraph_support`).
    """
    sizes = settings.cudagraph_capture_sizes
    mode = settings.cudagraph_mode.upper()
    if settings.engine == "V0" or not graphs_for_full_and_piecewise(settings.version) or mode == "PIECEWISE":
        return len(sizes), 0
    drafts_apart = settings.num_speculative_tokens > 0 and not 10.0 <= settings.capability < 11.0
    if drafts_apart and _attends_by_flashinfer(settings, layers):
        return len(sizes), 0
    whole = sum(n <= _decode_batch(settings) for n in sizes)
    return (0 if mode in ("FULL", "FULL_DECODE_ONLY") else len(sizes)), whole


def _decode_batch(settings: Settings) -> int:
    return settings.max_num_seqs * (1 + settings.num_speculative_tokens)


def deducted_graphs(settings: Settings, model: ModelFacts, stage: Stage) -> Derived[float]:
    """GiB taken from the KV cache beforehand for graphs (0.20 and later, where the runner estimates).

    The larger of the first captures of either kind: with FlashInfer the whole-model one holds its workspace and all
    that the piecewise one does (0.49 and 0.83 GiB told by two starts with an fp8 cache).
    """
    if (
        not settings.graphs
        or not settings.estimate_graphs
        or not deducts_graphs(settings.version, settings.runner, asked=settings.estimate_asked)
    ):
        return Derived(0.0, "GiB", "this release or runner deducts nothing for graphs", "computed")
    found = graph_memory(settings, model, stage)
    if not found.value:
        return found
    first, whole = _first_captures(settings, model, stage)
    first = max(first, whole) if settings.hopper else first + whole
    value = (first + _driver_bytes(settings, model, stage)) / GIB
    return Derived(value, "GiB", "trial captures: the larger first one + graphs x layers", found.source, found.inputs)
