"""Encoders of speech beside a decoder: the conformers of Gemma 3n and 4 and Phi-4-multimodal, MiMo's transformer."""

from __future__ import annotations

from trimtab.facts.architectures.blocks import matrix, norm
from trimtab.facts.architectures.shape import LARGEST_WIDTH
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Tower
from trimtab.facts.weights import Weight

PHI4_FINAL = 10
"""Frequency rows that Phi-4-multimodal's three strides of two leave of 80 (phi4mm_utils.py NemoConvSubsampling)."""


def gemma3n_audio(top: Keys, a: Keys, text_hidden: int) -> Tower:
    """Gemma 3n's encoder, taken from transformers and whole on every rank, and its embedder (gemma3n_mm.py)."""
    width, layers = a.required("hidden_size"), a.integer("conf_num_hidden_layers", low=1, high=1024) or 12
    heads, kernel = a.integer("conf_num_attention_heads", low=1) or 8, a.integer("conf_conv_kernel_size", low=1) or 5
    channels = a.integers("sscp_conv_channel_size") or (128, 32)
    weights = (
        *_stem(width, channels, a.integer("input_feat_size", low=1) or 128),
        *_usm_block(width, heads, kernel) * layers,
        *gemma3n_embedder(a, width, text_hidden, "embed_audio"),
    )
    return Tower("audio", weights, width, 4 * width, layers, splits=False)


def gemma4_audio(top: Keys, a: Keys, text_hidden: int) -> Tower:
    """Gemma 4's encoder with an output projection, whole on every rank (gemma4_mm.py)."""
    width, layers = a.required("hidden_size"), a.integer("num_hidden_layers", low=1, high=1024) or 12
    heads, kernel = a.integer("num_attention_heads", low=1) or 8, a.integer("conv_kernel_size", low=1) or 5
    channels = a.integers("subsampling_conv_channels") or (128, 32)
    out = a.integer("output_proj_dims", low=1, high=LARGEST_WIDTH) or 1536
    weights = (
        *_stem(width, channels, 128),
        *_usm_block(width, heads, kernel) * layers,
        matrix("output_proj", "audio", out, width, bias=True),
        matrix("embed_audio.embedding_projection", "projector", text_hidden, out),
    )
    return Tower("audio", weights, width, 4 * width, layers, splits=False)


def gemma4_frames(top: Keys, a: Keys, text_hidden: int) -> Tower:
    """Gemma 4 without an audio encoder: frames through one matrix (gemma4_unified.py)."""
    width = a.required("audio_embed_dim", "output_proj_dims", "hidden_size", high=LARGEST_WIDTH)
    return Tower("audio", (matrix("embed_audio.embedding_projection", "projector", text_hidden, width),), width)


def gemma3n_embedder(v: Keys, width: int, text_hidden: int, name: str) -> tuple[Weight, ...]:
    """A table of hard tokens, two norms and a projection."""
    rows = v.integer("vocab_size", low=1) or 128
    return (
        matrix(f"{name}.embedding", "projector", rows, width),
        *(norm(f"{name}.{n}_embedding_norm", width, part="projector") for n in ("hard", "soft")),
        matrix(f"{name}.embedding_projection", "projector", text_hidden, width, split="columns"),
    )


def _stem(width: int, channels: tuple[int, ...], bins: int) -> tuple[Weight, ...]:
    """Two convolutions of stride two over the spectrogram, and a projection of what they leave."""
    into, found = 1, []
    for i, out in enumerate(channels):
        found += [matrix(f"conv_{i}", "audio", out, 9 * into), norm(f"conv_{i}.norm", out, part="audio")]
        into, bins = out, -(-bins // 2)
    return (*found, matrix("input_proj_linear", "audio", width, into * bins))


def _usm_block(width: int, heads: int, kernel: int) -> tuple[Weight, ...]:
    """Two half feed-forwards around attention with relative keys and a light convolution."""
    feeds = (
        matrix("ffw.up", "audio", 4 * width, width),
        matrix("ffw.down", "audio", width, 4 * width),
        *(norm(f"ffw.{n}_layer_norm", width, part="audio") for n in ("pre", "post")),
    )
    return (
        *feeds * 2,
        *(matrix(f"attention.{n}", "audio", width, width) for n in ("q_proj", "k_proj", "v_proj", "pos_proj", "post")),
        norm("attention.per_dim_scale", width // max(1, heads), part="audio"),
        *(norm(f"attention.{n}_norm", width, part="audio") for n in ("pre", "post")),
        matrix("lconv1d.linear_start", "audio", 2 * width, width),
        matrix("lconv1d.depthwise_conv1d", "audio", width, kernel),
        matrix("lconv1d.linear_end", "audio", width, width),
        *(norm(f"lconv1d.{n}_norm", width, part="audio") for n in ("pre", "conv")),
        norm("norm_out", width, part="audio"),
    )


def phi4_audio(top: Keys, a: Keys, text_hidden: int) -> Tower:
    """Phi-4-multimodal's conformer and its two projections, for speech alone and beside images (phi4mm_audio.py)."""
    c = a.sub("config") or a
    width, layers = c.required("attention_dim", "hidden_size"), c.required("num_blocks", high=1024)
    inner, heads = c.required("linear_units", "intermediate_size"), c.integer("attention_heads", low=1) or 16
    nemo, bias = c.sub("nemo_conv_settings"), c.sub("relative_attention_bias_args")
    conv = (nemo.integer("conv_channels", low=1) if nemo is not None else None) or width
    reach = (bias.integer("t5_bias_max_distance", low=1) if bias is not None else None) or 1000
    weights = (
        *_nemo_stem(conv, width),
        matrix("relative_attention_bias", "audio", 2 * reach, heads),
        *_conformer_block(width, inner, c.integer("kernel_size", low=1) or 3) * layers,
        *_two_projections(text_hidden, width),
    )
    return Tower("audio", weights, width, inner, layers, splits=False)


def _nemo_stem(conv: int, width: int) -> tuple[Weight, ...]:
    """Depth-wise convolutions of stride two, thrice."""
    return (
        *(matrix(f"conv.{i}", "audio", conv, 9, bias=True) for i in (0, 2, 5)),
        *(matrix(f"conv.{i}", "audio", conv, conv, bias=True) for i in (3, 6)),
        matrix("embed.out", "audio", width, conv * PHI4_FINAL, bias=True),
    )


def _conformer_block(width: int, inner: int, kernel: int) -> tuple[Weight, ...]:
    feeds = (
        norm("ffw.layer_norm", width, bias=True, part="audio"),
        matrix("ffw.gate_up_proj", "audio", 2 * inner, width, bias=True),
        matrix("ffw.down_proj", "audio", width, inner, bias=True),
    )
    return (
        *feeds * 2,
        *(matrix(f"self_attn.linear_{n}", "audio", width, width, bias=True) for n in ("q", "k", "v", "out")),
        *(norm(f"norm{i}", width, bias=True, part="audio") for i in range(3)),
        matrix("conv.glu", "audio", 2 * width, width, bias=True),
        norm("conv.glu.b", width, bias=True, part="audio"),
        matrix("conv.depthwise", "audio", width, kernel, bias=True),
        *(matrix(f"conv.pointwise{i}", "audio", width, width, bias=True) for i in range(2)),
    )


def _two_projections(text_hidden: int, width: int) -> tuple[Weight, ...]:
    one = (
        matrix("audio_projection.0", "projector", text_hidden, width, bias=True),
        matrix("audio_projection.2", "projector", text_hidden, text_hidden, bias=True),
    )
    return one * 2


def mimo_audio(top: Keys, a: Keys, text_hidden: int) -> Tower:
    """MiMo-V2-Omni's tables of codes, local transformer and projection (mimo_audio.py MimoAudioEncoder)."""
    width, layers = a.integer("input_local_dim", low=1) or 1024, a.integer("input_local_layers", low=1, high=1024) or 6
    inner = a.integer("input_local_intermediate_size", low=1) or 4096
    group, channels = a.integer("group_size", low=1) or 4, a.integer("audio_channels", low=1, high=64) or 8
    sizes = _sizes(a.config.get("speech_vocab_size"), channels)
    block = (
        *(norm(f"norm{i}", width, part="audio") for i in range(2)),
        matrix("self_attn.qkv_proj", "audio", 3 * width, width, bias=True),
        matrix("self_attn.o_proj", "audio", width, width),
        matrix("mlp.gate_up_proj", "audio", 2 * inner, width),
        matrix("mlp.down_proj", "audio", width, inner),
    )
    wide, out = width * group, a.integer("out_hidden_size", low=1, high=LARGEST_WIDTH) or text_hidden
    projection: tuple[Weight, ...] = (matrix("projection", "projector", out, wide),)
    if a.integer("projection_layers") == 2:
        projection = (
            matrix("projection.0", "projector", 4 * wide, wide),
            matrix("projection.2", "projector", out, 4 * wide),
        )
    tables = tuple(matrix(f"speech_embeddings.{i}", "audio", n, width) for i, n in enumerate(sizes))
    top.assumed.append("the audio tokenizer, whose weights are in a folder of its own, is not counted")
    return Tower("audio", tables + block * layers + projection, width, inner, layers, splits=False)


def _sizes(value: object, channels: int) -> tuple[int, ...]:
    """A size per channel, given as "1025-129-..." or as one number for all."""
    if isinstance(value, str) and value.replace("-", "").isdigit():
        found = tuple(int(n) for n in value.split("-") if n)
        return found if len(found) > 1 else found * channels
    return (value,) * channels if isinstance(value, int) and 0 < value < 1 << 24 else (1025, 1025) + (129,) * 6
