"""Vision towers beside a decoder, and the projectors that lead into it."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from trimtab.facts.architectures.blocks import matrix, norm
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Tower
from trimtab.facts.weights import Span, Weight


class Vit(msgspec.Struct, frozen=True):
    """How a vision transformer differs from SigLIP's."""

    gated: bool = False
    bias: bool = True
    mlp_bias: bool | None = None
    """None: as `bias`."""
    norm_bias: bool = True
    patch_bias: bool = True
    class_token: bool = False
    positions: bool = True
    pre_norm: bool = False
    final_norm: bool = True
    layer_scale: bool = False
    dropped_layers: int = 0
    """Last layers that vLLM does not load, since features are taken before them."""


class VitShape(msgspec.Struct, frozen=True):
    hidden: int
    layers: int
    heads: int
    inner: int
    patch_inputs: int
    positions: int
    attention: int = 0
    """Width of all heads together, where it is not the hidden width."""
    kv_heads: int = 0
    """Heads of keys and values, where they are fewer."""


def vit_shape(v: Keys) -> VitShape:
    hidden = (
        v.required("embed_dim", "hidden_size") if v.has("embed_dim") else v.required("hidden_size", "vt_hidden_size")
    )
    layers = v.required("depth", "num_hidden_layers", "vt_num_hidden_layers")
    heads = v.required("num_heads", "num_attention_heads", "vt_num_attention_heads")
    inner = v.integer("intermediate_size", "vt_intermediate_size") or int(
        hidden * (v.number("mlp_ratio", high=1024) or 4)
    )
    patch, channels = _side(v, "patch_size") or 14, v.integer("num_channels", "in_channels", "in_chans") or 3
    frames = v.integer("temporal_patch_size") or 1
    side = (_side(v, "image_size") or 0) // max(1, patch)
    positions = v.integer("num_position_embeddings") or side * side
    kv_heads = v.integer("num_key_value_heads", low=1) or 0
    return VitShape(hidden, layers, heads, inner, channels * patch * patch * frames, positions, kv_heads=kv_heads)


def vit_weights(v: Keys, s: VitShape, kind: Vit, *, qk_norm: bool = False) -> tuple[Weight, ...]:
    """The transformer itself, its patch embedding and norms."""
    found = [matrix("patch_embed", "vision", s.hidden, s.patch_inputs, bias=kind.patch_bias)]
    if kind.class_token:
        found.append(norm("class_embedding", s.hidden, part="vision"))
    if kind.positions:
        found.append(matrix("pos_embed", "vision", s.positions + kind.class_token, s.hidden))
    block = _vit_block(s, kind, qk_norm)
    found += block * (s.layers - kind.dropped_layers)
    extra = kind.pre_norm + kind.final_norm
    found += [norm(f"norm{i}", s.hidden, bias=kind.norm_bias, part="vision") for i in range(extra)]
    return tuple(found)


def _vit_block(s: VitShape, kind: Vit, qk_norm: bool) -> list[Weight]:
    head = s.attention or s.hidden // max(1, s.heads) * s.heads
    span, kv = Span(head, s.heads), Span(head // max(1, s.heads) * (s.kv_heads or s.heads), s.kv_heads or s.heads)
    up = (Span(s.inner), Span(s.inner)) if kind.gated else (Span(s.inner),)
    mlp_bias = kind.bias if kind.mlp_bias is None else kind.mlp_bias
    block = [norm(f"blocks.norm{i}", s.hidden, bias=kind.norm_bias, part="vision") for i in (1, 2)]
    block += [
        Weight("blocks.attn.qkv", "vision", (span, kv, kv), s.hidden, "rows", bias=kind.bias),
        Weight("blocks.attn.proj", "vision", (Span(s.hidden),), head, "columns", bias=kind.bias),
        Weight("blocks.mlp.fc1", "vision", up, s.hidden, "rows", bias=mlp_bias),
        Weight("blocks.mlp.fc2", "vision", (Span(s.hidden),), s.inner, "columns", bias=mlp_bias),
    ]
    if qk_norm:
        block += [norm(f"blocks.attn.{n}_norm", s.hidden, part="vision") for n in ("q", "k")]
    if kind.layer_scale:
        block += [norm(f"blocks.ls{i}", s.hidden, part="vision") for i in (1, 2)]
    return block


def merger(name: str, into: int, out: int, normed: int, *, norm_bias: bool) -> tuple[Weight, ...]:
    """Qwen's patch merger: a norm, then two linear layers with biases (qwen2_vl.py, Qwen2VisionPatchMerger)."""
    return (
        norm(f"{name}.norm", normed, bias=norm_bias, part="projector"),
        Weight(f"{name}.fc1", "projector", (Span(into),), into, "rows", bias=True),
        Weight(f"{name}.fc2", "projector", (Span(out),), into, "columns", bias=True),
    )


def two_layers(into: int, middle: int, out: int, *, bias: bool) -> tuple[Weight, ...]:
    return (
        Weight("projector.linear_1", "projector", (Span(middle),), into, "rows", bias=bias),
        Weight("projector.linear_2", "projector", (Span(out),), middle, "columns", bias=bias),
    )


def qwen_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """Qwen2-VL to Qwen3.5: which one is read off the keys (qwen2_vl.py, qwen2_5_vl.py, qwen3_vl.py)."""
    s = vit_shape(v)
    merge = v.integer("spatial_merge_size") or 2
    wide = s.hidden * merge * merge
    third = v.has("num_position_embeddings")
    second_half = not third and v.has("fullatt_block_indexes")
    kind = Vit(gated=second_half, norm_bias=not second_half, patch_bias=third, positions=third, final_norm=False)
    out = text_hidden if not v.has("out_hidden_size") else v.required("out_hidden_size")
    weights = vit_weights(v, s, kind) + merger("merger", wide, out, s.hidden, norm_bias=not second_half)
    for i in range(len(v.integers("deepstack_visual_indexes"))):
        weights += merger(f"deepstack_merger_list.{i}", wide, out, wide, norm_bias=True)
    return Tower("vision", weights, s.hidden, s.inner, s.layers, 16384)


def gemma3_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """SigLIP and one projection (gemma3_mm.py)."""
    s = vit_shape(v)
    projector = (
        matrix("mm_input_projection", "projector", text_hidden, s.hidden),
        norm("mm_soft_emb_norm", s.hidden, part="projector"),
    )
    tokens = top.integer("mm_tokens_per_image") or 256
    return Tower("vision", vit_weights(v, s, Vit()) + projector, s.hidden, s.inner, s.layers, tokens)


def pixtral_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """Mistral 3's Pixtral tower with a patch merger, or Pixtral's own (mistral3.py, pixtral.py)."""
    s = vit_shape(v)
    kind = Vit(
        gated=True, bias=False, norm_bias=False, patch_bias=False, positions=False, pre_norm=True, final_norm=False
    )
    merge = top.integer("spatial_merge_size") or 1
    projector = two_layers(s.hidden, text_hidden, text_hidden, bias=top.flag("multimodal_projector_bias"))
    if merge > 1:
        projector += (
            norm("projector.norm", s.hidden, part="projector"),
            matrix("projector.merging_layer", "projector", s.hidden, s.hidden * merge * merge),
        )
    side = (_side(v, "image_size") or 0) // ((_side(v, "patch_size") or 14) * merge)
    return Tower("vision", vit_weights(v, s, kind) + projector, s.hidden, s.inner, s.layers, side * (side + 1) or None)


def llava_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """CLIP or SigLIP up to `vision_feature_layer`, and two layers into the decoder (llava.py)."""
    if v.text("model_type") == "pixtral":
        return pixtral_vision(top, v, text_hidden)
    s = vit_shape(v)
    layer = top.config.get("vision_feature_layer", -2)
    dropped = -layer - 1 if isinstance(layer, int) and layer < 0 else 0
    clip = v.text("model_type").startswith("clip")
    kind = Vit(patch_bias=not clip, class_token=clip, pre_norm=clip, final_norm=False, dropped_layers=dropped)
    projector = two_layers(s.hidden, text_hidden, text_hidden, bias=True)
    return Tower("vision", vit_weights(v, s, kind) + projector, s.hidden, s.inner, s.layers, s.positions or None)


def intern_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """InternViT with pixel shuffle into two layers (intern_vit.py, internvl.py)."""
    s = vit_shape(v)
    rms = v.text("norm_type") == "rms_norm"
    kind = Vit(norm_bias=not rms, class_token=True, final_norm=False, layer_scale=True)
    ratio = top.number("downsample_ratio", low=2**-10, high=1) or 0.5
    wide = int(s.hidden * round(1 / ratio) ** 2)
    weights = vit_weights(v, s, kind, qk_norm=v.flag("qk_normalization", "use_qk_norm"))
    projector = (
        norm("mlp1.0", wide, bias=True, part="projector"),
        matrix("mlp1.1", "projector", text_hidden, wide, bias=True),
        matrix("mlp1.3", "projector", text_hidden, text_hidden, bias=True),
    )
    per_tile = int(s.positions * ratio * ratio)
    tiles = (top.integer("max_dynamic_patch") or 12) + 1
    return Tower("vision", weights + projector, s.hidden, s.inner, s.layers, per_tile * tiles)


def glm4v_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """GLM-4.1V to 4.6V (glm4_1v.py): gated blocks, a learned position table, a down-sampling convolution, a merger."""
    s = vit_shape(v)
    out = v.required("out_hidden_size")
    inner = v.required("intermediate_size")
    merge = v.integer("spatial_merge_size") or 2
    kind = Vit(gated=True, bias=v.flag("attention_bias"), norm_bias=False, final_norm=True, pre_norm=True)
    shape = VitShape(s.hidden, s.layers, s.heads, out, s.patch_inputs, s.positions)
    projector = (
        matrix("downsample", "projector", out, s.hidden * merge * merge, bias=True),
        matrix("merger.proj", "projector", out, out),
        norm("merger.post_projection_norm", out, bias=True, part="projector"),
        Weight("merger.gate_up_proj", "projector", (Span(inner), Span(inner)), out, "rows"),
        Weight("merger.down_proj", "projector", (Span(out),), inner, "columns"),
    )
    return Tower("vision", vit_weights(v, shape, kind) + projector, s.hidden, out, s.layers)


def glm_ocr_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """GLM-OCR (glm_ocr.py): norms of queries and keys, no position table, a merger of the text's width."""
    s = vit_shape(v)
    out, merge = v.required("out_hidden_size"), v.integer("spatial_merge_size") or 2
    kind = Vit(gated=True, bias=v.flag("attention_bias", default=True), norm_bias=False, positions=False)
    inner = out * (v.integer("in_channels") or 3)
    projector = (
        matrix("downsample", "projector", out, s.hidden * merge * merge, bias=True),
        matrix("merger.proj", "projector", out, out),
        norm("merger.post_projection_norm", out, bias=True, part="projector"),
        Weight("merger.gate_up_proj", "projector", (Span(inner), Span(inner)), out, "rows"),
        Weight("merger.down_proj", "projector", (Span(out),), inner, "columns"),
    )
    heads = tuple(norm(f"blocks.attn.{n}_norm", s.hidden // max(1, s.heads), part="vision") for n in ("q", "k"))
    weights = vit_weights(v, s, kind) + heads * s.layers + projector
    return Tower("vision", weights, s.hidden, s.inner, s.layers)


def llama4_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """Llama 4's tower with its pixel-shuffle adapter (mllama4.py)."""
    s = vit_shape(v)
    kind = Vit(patch_bias=False, class_token=True, pre_norm=True)
    ratio = v.number("pixel_shuffle_ratio", low=2**-10, high=1) or 0.5
    wide = int(s.hidden / ratio / ratio)
    middle, out = v.required("projector_input_dim"), v.required("projector_output_dim")
    projector = (
        Weight("vision_adapter.fc1", "projector", (Span(middle),), wide, "rows"),
        Weight("vision_adapter.fc2", "projector", (Span(out),), middle, "columns"),
        matrix("multi_modal_projector.linear_1", "projector", text_hidden, v.required("vision_output_dim")),
    )
    tokens = int(s.positions * ratio * ratio)
    return Tower("vision", vit_weights(v, s, kind) + projector, s.hidden, s.inner, s.layers, tokens)


def gemma4_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """Gemma 4's tower, which vLLM takes from transformers and holds whole on every rank (gemma4_mm.py)."""
    s = vit_shape(v)
    head_dim = v.required("head_dim")
    own: tuple[Weight, ...] = (
        matrix("patch_embedder.input_proj", "vision", s.hidden, s.patch_inputs),
        matrix("position_embedding_table", "vision", 2 * v.required("position_embedding_size"), s.hidden),
        matrix("embed_vision.embedding_projection", "projector", text_hidden, s.hidden),
    )
    if v.flag("standardize"):
        own += (norm("std", s.hidden, bias=True, part="vision"),)
    block = (
        *(norm(f"blocks.norm{i}", s.hidden, part="vision") for i in range(4)),
        *(norm(f"blocks.attn.{n}_norm", head_dim, part="vision") for n in ("q", "k")),
        matrix("blocks.attn.qkv", "vision", 3 * s.heads * head_dim, s.hidden),
        matrix("blocks.attn.proj", "vision", s.hidden, s.heads * head_dim),
        matrix("blocks.mlp.gate_up", "vision", 2 * s.inner, s.hidden),
        matrix("blocks.mlp.down", "vision", s.hidden, s.inner),
    )
    return Tower("vision", own + block * s.layers, s.hidden, s.inner, s.layers, splits=False)


def mllama_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """Llama 3.2's tower: local and gated global layers, position tables per tile and aspect ratio (mllama.py)."""
    s = vit_shape(v)
    tiles, ratios = v.integer("max_num_tiles") or 4, len(v.config.get("supported_aspect_ratios") or range(8)) + 1
    above = v.integer("num_global_layers") or 0
    seen = s.positions + 1
    inner = Vit(patch_bias=False, class_token=True, pre_norm=True)
    block = tuple(replace(w, bias=w.bias and "attn" not in w.name) for w in _vit_block(s, inner, qk_norm=False))
    gates = tuple(norm(f"global.gate_{n}", 1, part="vision") for n in ("attn", "ffn"))
    weights = (
        matrix("patch_embedding", "vision", s.hidden, s.patch_inputs),
        norm("class_embedding", s.hidden, part="vision"),
        matrix("gated_positional_embedding", "vision", seen, s.hidden),
        matrix("tile_embedding", "vision", ratios, tiles * seen * s.hidden),
        *(matrix(f"{n}_tile_positional_embedding", "vision", ratios, tiles * s.hidden) for n in ("pre", "post")),
        norm("gates", 3, part="vision"),
        *(norm(f"layernorm_{n}", s.hidden, bias=True, part="vision") for n in ("pre", "post")),
        *block * s.layers,
        *(block + gates) * above,
        matrix("multi_modal_projector", "projector", text_hidden, v.required("vision_output_dim"), bias=True),
    )
    return Tower("vision", weights, s.hidden, s.inner, s.layers + above, tiles * seen)


def paligemma_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """SigLIP and one linear layer (paligemma.py)."""
    s = vit_shape(v)
    projector = (matrix("multi_modal_projector.linear", "projector", text_hidden, s.hidden, bias=True),)
    return Tower("vision", vit_weights(v, s, Vit()) + projector, s.hidden, s.inner, s.layers, s.positions or None)


def idefics3_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """Idefics 3 and SmolVLM: SigLIP and a pixel-shuffled projection (idefics3.py)."""
    s = vit_shape(v)
    factor = top.integer("scale_factor", low=1) or 2
    wide = s.hidden * factor * factor
    projector = (matrix("connector.modality_projection.proj", "projector", text_hidden, wide),)
    return Tower("vision", vit_weights(v, s, Vit()) + projector, s.hidden, s.inner, s.layers)


def moon_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """Kimi-VL's MoonViT and its projector (moonvit.py, kimi_vl.py)."""
    s = vit_shape(v)
    side = v.integer("init_pos_emb_height", "pos_emb_height", low=1) or 64
    wide = s.hidden * 4
    shape = replace(s, positions=side * side)
    projector = (
        norm("multi_modal_projector.pre_norm", s.hidden, bias=True, part="projector"),
        matrix("multi_modal_projector.linear_1", "projector", wide, wide, bias=True),
        matrix("multi_modal_projector.linear_2", "projector", text_hidden, wide, bias=True),
    )
    return Tower("vision", vit_weights(v, shape, Vit()) + projector, s.hidden, s.inner, s.layers)


def _side(v: Keys, name: str) -> int | None:
    """A side in pixels; some configs give [height, width]."""
    if isinstance(v.config.get(name), list):
        return max(v.integers(name), default=None)
    return v.integer(name)
