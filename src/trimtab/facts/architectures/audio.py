"""Audio encoders beside a decoder, all made of Whisper's layers, and what leads from them into it."""

from __future__ import annotations

from trimtab.facts.architectures.blocks import matrix, norm
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Tower
from trimtab.facts.weights import Span, Weight

SECONDS_30 = 1500
"""Positions of Whisper's encoder: 30 seconds at 50 a second."""


def qwen2_audio(top: Keys, a: Keys, text_hidden: int) -> Tower:
    """Whisper's encoder and one linear layer (qwen2_audio.py)."""
    width, weights = _stem(a, positions=True)
    projector = matrix("multi_modal_projector.linear", "projector", text_hidden, width, bias=True)
    return _tower(a, width, (*weights, *_layers(a, width), _norm("layer_norm", width), projector), 750)


def qwen25_omni_audio(top: Keys, a: Keys, text_hidden: int) -> Tower:
    """As Qwen2-Audio, its positions computed, with a table of begin and end (qwen2_5_omni_thinker.py)."""
    width, weights = _stem(a, positions=False)
    out = a.integer("output_dim", low=1) or text_hidden
    ends = (
        _norm("ln_post", width),
        matrix("audio_bos_eos_token", "audio", 2, out),
        matrix("proj", "projector", out, width, bias=True),
    )
    return _tower(a, width, (*weights, *_layers(a, width), *ends), 750)


def qwen3_omni_audio(top: Keys, a: Keys, text_hidden: int) -> Tower:
    """Three convolutions over the spectrogram, Whisper's layers, two projections (qwen3_omni_moe_thinker.py)."""
    width = a.required("d_model")
    bins, middle = a.integer("num_mel_bins", low=1) or 128, a.integer("downsample_hidden_size", low=1) or 480
    out = a.integer("output_dim", low=1) or text_hidden
    for _ in range(3):
        bins = (bins + 1) // 2
    weights = (
        matrix("conv2d1", "audio", middle, 9, bias=True),
        *(matrix(f"conv2d{i}", "audio", middle, middle * 9, bias=True) for i in (2, 3)),
        matrix("conv_out", "audio", width, middle * bins),
        *_layers(a, width),
        _norm("ln_post", width),
        matrix("proj1", "projector", width, width, bias=True),
        matrix("proj2", "projector", out, width, bias=True),
    )
    return _tower(a, width, weights, 390)


def minicpmo_audio(top: Keys, a: Keys, text_hidden: int) -> Tower:
    """Whisper's encoder with its positions and two layers into the decoder (minicpmo.py)."""
    width, weights = _stem(a, positions=True)
    inner = a.integer("encoder_ffn_dim", low=4) or 4 * width
    projector = (
        matrix("audio_projection_layer.linear1", "projector", text_hidden, inner // 4, bias=True),
        matrix("audio_projection_layer.linear2", "projector", text_hidden, text_hidden, bias=True),
    )
    return _tower(a, width, (*weights, *_layers(a, width), _norm("layer_norm", width), *projector), None)


def voxtral_audio(top: Keys, a: Keys, text_hidden: int) -> Tower:
    """Whisper's encoder, four of its outputs side by side into two layers (voxtral.py)."""
    width, weights = _stem(a, positions=True)
    wide = width * (a.integer("downsample_factor", low=1) or 4)
    adapter = (
        matrix("audio_language_adapter.w_in", "projector", text_hidden, wide),
        matrix("audio_language_adapter.w_out", "projector", text_hidden, text_hidden),
    )
    return _tower(a, width, (*weights, *_layers(a, width), _norm("layer_norm", width), *adapter), 375)


def whisper_encoder(keys: Keys) -> Tower:
    """Whisper's own encoder (whisper.py WhisperEncoder)."""
    width, weights = _stem(keys, positions=True)
    weights = (*weights, *_layers(keys, width), _norm("layer_norm", width))
    return _tower(keys, width, weights, keys.integer("max_source_positions") or SECONDS_30)


def _stem(a: Keys, *, positions: bool) -> tuple[int, tuple[Weight, ...]]:
    width, bins = a.required("d_model", "hidden_size"), a.integer("num_mel_bins", low=1) or 80
    weights = [
        matrix("conv1", "audio", width, bins * 3, bias=True),
        matrix("conv2", "audio", width, width * 3, bias=True),
    ]
    if positions:
        weights.append(matrix("embed_positions", "audio", a.integer("max_source_positions") or SECONDS_30, width))
    return width, tuple(weights)


def _layers(a: Keys, width: int) -> tuple[Weight, ...]:
    """Whisper's encoder layers; the keys have no bias (whisper.py WhisperEncoderLayer)."""
    heads = a.integer("encoder_attention_heads", "num_attention_heads", low=1) or 16
    inner = a.integer("encoder_ffn_dim", "intermediate_size", low=1) or 4 * width
    split = Span(width, heads)
    block = (
        Weight("layers.self_attn.qkv", "audio", (split, split, split), width, "rows"),
        matrix("layers.self_attn.qv_bias", "audio", 2 * width, 1),
        Weight("layers.self_attn.out_proj", "audio", (Span(width),), width, "columns", bias=True),
        Weight("layers.fc1", "audio", (Span(inner),), width, "rows", bias=True),
        Weight("layers.fc2", "audio", (Span(width),), inner, "columns", bias=True),
        _norm("layers.self_attn_layer_norm", width),
        _norm("layers.final_layer_norm", width),
    )
    return block * (a.integer("encoder_layers", "num_hidden_layers", low=1, high=1024) or 32)


def _norm(name: str, width: int) -> Weight:
    return norm(name, width, bias=True, part="audio")


def _tower(a: Keys, width: int, weights: tuple[Weight, ...], tokens: int | None) -> Tower:
    layers = a.integer("encoder_layers", "num_hidden_layers", low=1, high=1024) or 32
    return Tower(
        "audio", weights, width, a.integer("encoder_ffn_dim", "intermediate_size", low=1) or 4 * width, layers, tokens
    )
