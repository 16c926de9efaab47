"""What profiling a vision or audio encoder takes: a batch of the largest items through the tower."""

from __future__ import annotations

from trimtab.facts.layers import Tower
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.settings import Settings

PATCHES_PER_TOKEN = {"Gemma3": 16, "Qwen": 4, "UITARS": 4}
"""Patches that one embedding is made of, by the beginning of the architecture's name; else 1."""
INTERPOLATED_WIDTHS = 15.6
"""Copies of patches x width alive while Qwen3-VL's towers interpolate their positions: four corners, their weighted
copies, the sum, and the pixels (qwen3_vl.py `fast_pos_embed_interpolate`). A start of 0.20.0 fixed the number."""

CROSS_WIDTHS = 18.7
"""Copies of patches x width alive in Llama 3.2's tower: its MLP and the five layers whose states it keeps, chiefly.
A start of 0.7.0 with 128 sequences fixed the number."""


def encoder_peak(settings: Settings, model: ModelFacts) -> int:
    """Bytes of the largest tower's activations for the items of one batch (gpu_model_runner.py `profile_run`).

    The V2 runner profiles no encoder before 0.28; V0 does it within the sequences of its one run.
    """
    if not settings.encoder or not settings.profile_encoder:
        return 0
    if settings.engine == "V0":
        return _v0(settings, model)
    if settings.runner == "v2" and settings.version < (0, 28):
        return 0
    return max((_tower(settings, model, tower) for tower in model.towers), default=0)


def _v0(settings: Settings, model: ModelFacts) -> int:
    """Models with cross-attention profile an image in every sequence (0.7.3 worker/enc_dec_model_runner.py)."""
    if not any(x.attention is not None and x.attention.cross for x in model.layers):
        return 0
    items = [settings.max_num_seqs * (t.tokens_per_item or 0) * t.hidden_size for t in model.towers]
    return int(max(items, default=0) * CROSS_WIDTHS * model.element_bytes)


def _tower(settings: Settings, model: ModelFacts, tower: Tower) -> int:
    item = tower.tokens_per_item or 0
    if not item:
        return 0
    items = max(1, settings.max_num_batched_tokens // item)
    each = next((n for name, n in PATCHES_PER_TOKEN.items() if model.architecture.startswith(name)), 1)
    tp = settings.tensor_parallel_size if tower.splits else 1
    widths = 2 * tower.intermediate_size / tp + 3 * tower.hidden_size
    if any(w.name == "pos_embed" for w in tower.weights) and model.architecture.startswith("Qwen"):
        widths = max(widths, INTERPOLATED_WIDTHS * tower.hidden_size)
    outputs = items * item * model.hidden_size
    return int(items * item * each * widths + outputs) * model.element_bytes
