"""What profiling a vision or audio encoder takes: a batch of the largest items through the tower."""

from __future__ import annotations

from trimtab.facts.layers import Tower
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.settings import Settings

PATCHES_PER_TOKEN = {"Gemma3": 16, "Qwen": 4, "UITARS": 4}
"""Patches that one embedding is made of, by the beginning of the architecture's name; else 1."""
VIDEO_FIRST = ("Qwen2VL", "Qwen2_5_VL")
VIDEO_PAIRS = 7
"""Pairs of frames in the 14 of `_MAX_FRAMES_PER_VIDEO` (0.11 to 0.33 qwen2_vl.py)."""
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


def _item(settings: Settings, model: ModelFacts, tower: Tower) -> int:
    """Embeddings of the largest item: for Qwen2-VL and 2.5-VL a video of up to seven pairs of frames of the largest
    image's size, as many as the context holds (0.11 to 0.33 qwen2_vl.py `get_num_frames_with_most_features`)."""
    item = tower.tokens_per_item or 0
    if item and model.architecture.startswith(VIDEO_FIRST) and settings.version >= (0, 11):
        return item * min(VIDEO_PAIRS, max(1, settings.max_model_len // item))
    return item


def _tokens(settings: Settings, model: ModelFacts, tower: Tower) -> int:
    """Embeddings of all items that are profiled at once: a batch of them, at least one."""
    item = _item(settings, model, tower)
    return item * max(1, settings.max_num_batched_tokens // item) if item else 0


def _patches(settings: Settings, model: ModelFacts, tower: Tower) -> int:
    each = next((n for name, n in PATCHES_PER_TOKEN.items() if model.architecture.startswith(name)), 1)
    return _tokens(settings, model, tower) * each


def _pixels(settings: Settings, model: ModelFacts, tower: Tower) -> int:
    """The items' patches as the processor makes them, in the model's dtype (inputs/registry.py `call_hf_processor`)."""
    width = next((w.into for w in tower.weights if w.name.startswith("patch_embed")), 0)
    return _patches(settings, model, tower) * width * model.element_bytes


def _outputs(settings: Settings, model: ModelFacts, tower: Tower) -> int:
    deep = sum(w.name.startswith("deepstack") and w.name.endswith("fc2") for w in tower.weights)
    return _tokens(settings, model, tower) * (1 + deep) * model.hidden_size * model.element_bytes


def _tower(settings: Settings, model: ModelFacts, tower: Tower) -> int:
    """Inner rows of the widest MLP and three hidden ones (SigLIP's holds the patches too), or where positions are
    learned beside a fused rotary attention (Qwen3-VL, Qwen3.5) its twelve hidden rows, beside the pixels.

    siglip.py, qwen2_5_vl.py, qwen3_vl.py of 0.26: four starts on H200 show each to 0.02 GiB.
    """
    tp = settings.tensor_parallel_size if tower.splits else 1
    gated = any(len(w.spans) > 1 for w in tower.weights if w.name == "blocks.mlp.fc1")
    learned = any(w.name == "pos_embed" for w in tower.weights)
    rotary = learned and model.architecture.startswith("Qwen3")
    streams = 4 if learned and not rotary else 3
    widths = (3 if gated else 2) * tower.intermediate_size / tp + streams * tower.hidden_size
    if rotary:
        widths = max(widths, 9 * tower.hidden_size / tp + 3 * tower.hidden_size)
    inside = int(_patches(settings, model, tower) * widths) * model.element_bytes
    deep = _outputs(settings, model, tower) - _tokens(settings, model, tower) * model.hidden_size * model.element_bytes
    return inside + _pixels(settings, model, tower) + deep
