"""What profiling a vision or audio encoder takes: a batch of the largest items through the tower."""

from __future__ import annotations

from trimtab.facts.layers import Tower
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.settings import Settings

PATCHES_PER_TOKEN = {"Gemma3": 16, "Qwen": 4, "UITARS": 4}
"""Patches that one embedding is made of, by the beginning of the architecture's name; else 1."""
CROSS_WIDTHS = 18.7
"""Copies of patches x width alive in Llama 3.2's tower: its MLP and the five layers whose states it keeps, chiefly.
A start of 0.7.0 with 128 sequences fixed the number."""


def encoder_peak(settings: Settings, model: ModelFacts) -> int:
    """Bytes of the largest tower's activations for the items of one batch (gpu_model_runner.py `profile_run`).

    The V2 runner profiles no encoder before 0.27; V0 does it within the sequences of its one run.
    """
    if not settings.encoder or not settings.profile_encoder:
        return 0
    if settings.engine == "V0":
        return _v0(settings, model)
    if settings.runner == "v2" and settings.version < (0, 27):
        return 0
    return max((_tower(settings, model, tower) for tower in model.towers), default=0)


def _v0(settings: Settings, model: ModelFacts) -> int:
    """Models with cross-attention profile an image in every sequence (0.7.3 worker/enc_dec_model_runner.py)."""
    if not any(x.attention is not None and x.attention.cross for x in model.layers):
        return 0
    items = [settings.max_num_seqs * (t.tokens_per_item or 0) * t.hidden_size for t in model.towers]
    return int(max(items, default=0) * CROSS_WIDTHS * model.element_bytes)


def held_inputs(settings: Settings, model: ModelFacts) -> int:
    """Bytes of the encoder's inputs and outputs that V1 keeps while it profiles the decoder.

    gpu_model_runner.py `profile_run`: `batched_dummy_mm_inputs` and the encoder cache live until it returns.
    """
    if encoder_peak(settings, model) == 0 or settings.engine == "V0":
        return 0
    return max((_pixels(settings, model, t) + _outputs(settings, model, t) for t in model.towers), default=0)


def _items(settings: Settings, tower: Tower) -> int:
    item = tower.tokens_per_item or 0
    return max(1, settings.max_num_batched_tokens // item) if item else 0


def _patches(settings: Settings, model: ModelFacts, tower: Tower) -> int:
    each = next((n for name, n in PATCHES_PER_TOKEN.items() if model.architecture.startswith(name)), 1)
    return _items(settings, tower) * (tower.tokens_per_item or 0) * each


def _pixels(settings: Settings, model: ModelFacts, tower: Tower) -> int:
    """The items' patches as the processor makes them, in the model's dtype (inputs/registry.py `call_hf_processor`)."""
    width = next((w.into for w in tower.weights if w.name.startswith("patch_embed")), 0)
    return _patches(settings, model, tower) * width * model.element_bytes


def _outputs(settings: Settings, model: ModelFacts, tower: Tower) -> int:
    return _items(settings, tower) * (tower.tokens_per_item or 0) * model.hidden_size * model.element_bytes


def _tower(settings: Settings, model: ModelFacts, tower: Tower) -> int:
    """Two copies of the MLP's inner rows and three of the hidden ones, beside the pixels: more than the eight copies
    that interpolating learned positions takes (0.19 qwen3_vl.py `fast_pos_embed_interpolate`)."""
    tp = settings.tensor_parallel_size if tower.splits else 1
    widths = 2 * tower.intermediate_size / tp + 3 * tower.hidden_size
    inside = int(_patches(settings, model, tower) * widths) * model.element_bytes
    return inside + _pixels(settings, model, tower) + _outputs(settings, model, tower)
