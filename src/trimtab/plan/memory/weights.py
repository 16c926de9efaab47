"""Weights on one rank as vLLM measures them after loading: tensors, rotary tables and what the allocator adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from trimtab.facts.derived import Derived
from trimtab.facts.layers import LayerFacts
from trimtab.facts.model import ModelFacts
from trimtab.facts.weights import Weight
from trimtab.plan.memory.allocator import GIB, held_bytes, reuse_loss_bytes
from trimtab.plan.memory.draft import draft_layers, draft_weights
from trimtab.plan.memory.lora import lora_bytes
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import frees_swizzled_scales, splits_blocks_over_20_mib
from trimtab.plan.parallel import Stage

_FIRST_TENSORS = 64
"""Tensors after the first rotary table among which its freed scratch blocks are handed out again."""
SCALE_GROUP, SWIZZLED_ROWS = 32, 256


def weights(settings: Settings, model: ModelFacts, stage: Stage) -> Derived[float]:
    """GiB of weights on one rank of `stage` ("Model loading took ..." in the log)."""
    splits = splits_blocks_over_20_mib(settings.version)
    parts = {
        "layers_gib": _layer_bytes(settings, model, stage, splits) / GIB,
        "embedding_and_head_gib": _held(_ends(model, stage), settings, splits) / GIB,
        "towers_gib": _tower_bytes(settings, model, splits) / GIB if stage.first else 0.0,
        "deepstack_gib": _deepstack_bytes(settings, model) / GIB if stage.first else 0.0,
        "draft_gib": _draft_bytes(settings, model, splits) / GIB if stage.last else 0.0,
        "lora_slots_gib": lora_bytes(settings, model, stage) / GIB,
        "rotary_tables_gib": _rotary_bytes(settings, model, stage) / GIB,
        "reused_blocks_gib": 0.0 if splits else _rotary_reuse(settings, model, stage) / GIB,
        "cpu_offload_gib": -settings.cpu_offload_gb,
    }
    value = max(0.0, sum(parts.values()))
    return Derived(
        value=value,
        unit="GiB",
        formula="tensors of this rank as the allocator holds them + rotary tables - cpu offload",
        source="declared",
        inputs={k: round(v, 4) for k, v in parts.items() if v},
        note="vLLM v1/worker/gpu_model_runner.py load_model; c10/cuda/CUDACachingAllocator.cpp",
    )


def _deepstack_bytes(settings: Settings, model: ModelFacts) -> int:
    """Buffers that Qwen3-VL makes for what its tower adds to the first decoder layers (0.11 to 0.33 qwen3_vl.py
    `deepstack_input_embeds`): one of tokens x hidden size a level."""
    levels = sum(w.name.startswith("deepstack") and w.name.endswith("fc2") for t in model.towers for w in t.weights)
    if not settings.encoder or settings.version < (0, 11):
        return 0
    return levels * settings.max_num_batched_tokens * model.hidden_size * model.element_bytes


def rank_tensors(weight: Weight, settings: Settings) -> tuple[int, ...]:
    """Bytes of each of a weight's tensors on one rank; experts split by count under expert parallelism."""
    if weight.part != "experts":
        return weight.rank_tensors(settings.tensor_parallel_size)
    ranks = (settings.expert_tensor_ranks, settings.expert_ranks, settings.mxfp4_tile)
    tensors = weight.rank_tensors(*ranks)
    if not weight.scheme.padded or not settings.swizzled_scales:
        return tensors
    values, scales, *bias = tensors
    copies, rows, into = weight.rank_shape(*ranks[:2])
    kept = () if frees_swizzled_scales(settings.version) else (scales,)
    return (values, copies * _swizzled(rows, into, settings), *kept, *(2 * b for b in bias))


def _swizzled(rows: int, into: int, settings: Settings) -> int:
    """Bytes of one expert's scales for Triton's kernels on Hopper, whose biases are fp32: rows to 256, groups to 2, to
    4 from 0.26 (0.26 quantization/utils/mxfp4_utils.py `_swizzle_mxfp4`; triton_kernels hopper_scale.py)."""
    groups, step = -(-into // SCALE_GROUP), 4 if settings.version >= (0, 26) else 2
    return -(-rows // SWIZZLED_ROWS) * SWIZZLED_ROWS * -(-groups // step) * step


def _held(weights: Iterable[Weight], settings: Settings, splits: bool) -> int:
    return sum(held_bytes(n, splits_large=splits) for w in weights for n in rank_tensors(w, settings))


def _layer_bytes(settings: Settings, model: ModelFacts, stage: Stage, splits: bool) -> int:
    known: dict[int, int] = {}
    total = 0
    for layer in model.layers[stage.start : stage.end]:
        if id(layer) not in known:
            known[id(layer)] = _held(layer.weights, settings, splits)
        total += known[id(layer)]
    return total


def _ends(model: ModelFacts, stage: Stage) -> tuple[Weight, ...]:
    """The embedding on the first stage, head and final norm on the last; a tied last stage holds the embedding too."""
    found: tuple[Weight, ...] = ()
    if stage.first or (stage.last and model.tied_embeddings):
        found += model.embedding
    return found + model.head if stage.last else found


def _tower_bytes(settings: Settings, model: ModelFacts, splits: bool) -> int:
    if not settings.encoder:
        return 0
    total = 0
    for tower in model.towers:
        tp = settings.tensor_parallel_size if tower.splits else 1
        total += sum(held_bytes(n, splits_large=splits) for w in tower.weights for n in w.rank_tensors(tp))
    return total


def _draft_bytes(settings: Settings, model: ModelFacts, splits: bool) -> int:
    total = _held(draft_weights(settings, model), settings, splits)
    return total + sum(_held(layer.weights, settings, splits) for layer in draft_layers(settings, model))


def _rotary_bytes(settings: Settings, model: ModelFacts, stage: Stage) -> int:
    """One table for all layers; up to 0.2.1 each layer has its own (0.2.0 model_executor/layers/attention.py), Gemma 2
    up to 0.5.4 (models/gemma2.py `GemmaRotaryEmbedding`)."""
    shared = (0, 5, 5) if model.architecture == "Gemma2ForCausalLM" else (0, 2, 2)
    tables = stage.layers if settings.version < shared else 1
    return tables * sum(positions * width * model.element_bytes for positions, width in model.rotary_tables)


def _rotary_reuse(settings: Settings, model: ModelFacts, stage: Stage) -> int:
    """Loss from scratch of the rotary table: angles, cosine, sine (each half as wide) and their concatenation, in fp32.

    vLLM model_executor/layers/rotary_embedding: `_compute_cos_sin_cache` runs when the first layer is built.
    """
    freed: list[int] = []
    for positions, width in model.rotary_tables:
        half = held_bytes(positions * width * 2, splits_large=False)
        freed += [half, half, half, held_bytes(positions * width * 4, splits_large=False)]
    return reuse_loss_bytes(
        islice(_after_rotary(settings, model.layers[stage.start : stage.end]), _FIRST_TENSORS), freed
    )


def _after_rotary(settings: Settings, layers: tuple[LayerFacts, ...]) -> Iterator[int]:
    """Tensor sizes asked for after the first layer's attention matrices."""
    for at, layer in enumerate(layers):
        for weight in layer.weights:
            if at > 0 or weight.part not in ("attention", "norm"):
                yield from rank_tensors(weight, settings)
