"""Vision towers with a bridge of their own into the decoder: resamplers, down-sampling layers, two encoders at once."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import matrix, norm
from trimtab.facts.architectures.shape import LARGEST_WIDTH
from trimtab.facts.architectures.towers import Vit, VitShape, two_layers, vit_shape, vit_weights
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Tower
from trimtab.facts.weights import Span, Weight


def minicpm_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """SigLIP and a resampler with learned queries, from 2.5 on (minicpmv.py, layers/resampler.py)."""
    s = vit_shape(v)
    dropped = 1 if top.flag("drop_vision_last_layer") else 0
    queries, width = top.integer("query_num", low=1) or 64, text_hidden
    resampler = (
        matrix("resampler.query", "projector", queries, width),
        matrix("resampler.kv_proj", "projector", width, s.hidden),
        matrix("resampler.attn.in_proj", "projector", 3 * width, width, bias=True),
        matrix("resampler.attn.out_proj", "projector", width, width, bias=True),
        *(norm(f"resampler.ln_{n}", width, bias=True, part="projector") for n in ("q", "kv", "post")),
        matrix("resampler.proj", "projector", width, width),
    )
    weights = vit_weights(v, s, Vit(dropped_layers=dropped)) + resampler
    slices = top.integer("slice_config", low=1) if isinstance(top.config.get("slice_config"), int) else None
    return Tower("vision", weights, s.hidden, s.inner, s.layers - dropped, queries * ((slices or 9) + 1))


def deepseek_vl2_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """SigLIP from timm and a down-sampling projector (deepseek_vl2.py)."""
    hidden, layers = v.integer("width", low=1) or 1152, v.integer("layers", low=1, high=1024) or 27
    heads, patch = v.integer("heads", low=1) or 16, v.integer("patch_size", low=1) or 14
    inner = int(hidden * (v.number("mlp_ratio", high=1024) or 3.7362))
    side = (v.integer("image_size", low=1) or 384) // patch
    s = VitShape(hidden, layers, heads, inner, 3 * patch * patch, side * side)
    return Tower("vision", vit_weights(v, s, Vit()) + _mlp(top, text_hidden), hidden, inner, layers)


def deepseek_ocr_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """SAM ViT-B, CLIP-L on its output, one linear layer; their sizes stand in deepseek_ocr.py and deepencoder.py."""
    clip = VitShape(1024, 24, 16, 4096, 3 * 14 * 14, 256)
    kind = Vit(patch_bias=False, class_token=True, pre_norm=True, final_norm=False)
    weights = _sam() + vit_weights(v, clip, kind) + _mlp(top, text_hidden)
    return Tower("vision", weights, clip.hidden, clip.inner, clip.layers, splits=False)


def aya_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """SigLIP, pixels shuffled together, a gated layer (aya_vision.py; cohere2_vision.py without the norm)."""
    s = vit_shape(v)
    factor = top.integer("downsample_factor", low=1) or 2
    wide = s.hidden * factor * factor
    inner = top.integer("alignment_intermediate_size", low=2) or 36864
    projector: tuple[Weight, ...] = (
        Weight("multi_modal_projector.linear_1", "projector", (Span(inner),), wide, "rows", bias=True),
        Weight("multi_modal_projector.linear_2", "projector", (Span(text_hidden),), inner // 2, "columns", bias=True),
    )
    if top.text("model_type") == "aya_vision":
        projector += (norm("multi_modal_projector.layernorm", wide, bias=True, part="projector"),)
    return Tower("vision", vit_weights(v, s, Vit()) + projector, s.hidden, s.inner, s.layers)


def kimi_k25_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """The MoonViT of images and clips of Kimi K2.5 and K3, its projector replicated (kimi_k25_vit.py)."""
    s = vit_shape(v)
    side = v.integer("init_pos_emb_height", low=1) or 64
    attention = v.integer("qkv_hidden_size", low=1, high=LARGEST_WIDTH) or 0
    shape = replace(s, positions=side * side, attention=attention)
    rms = v.text("norm_type") == "rmsnorm"
    kind = Vit(
        bias=v.flag("attn_bias", default=True), mlp_bias=v.flag("linear_bias", default=True), norm_bias=not rms,
        patch_bias=v.flag("patch_embed_proj_bias", default=True),
    )  # fmt: skip
    second = v.text("mm_projector_type") == "patchmergerv2"
    wide = s.hidden * 4
    projector = tuple(replace(w, split="none") for w in two_layers(wide, wide, text_hidden, bias=not second))
    if second:
        projector += (norm("mm_projector.post_norm", text_hidden, part="projector"),)
    else:
        projector += (norm("mm_projector.pre_norm", s.hidden, bias=True, part="projector"),)
    return Tower("vision", vit_weights(v, shape, kind) + projector, s.hidden, s.inner, s.layers)


def minimax_m3_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """A CLIP of rotary positions over pairs of frames, a projector and a patch merger (minimax_m3/common)."""
    s = vit_shape(v)
    own = v.sub("img_token_compression_config") or Keys({})
    frames, merge = own.integer("temporal_patch_size", low=1) or 2, own.integer("spatial_merge_size", low=1) or 2
    shape = s if v.has("temporal_patch_size") else replace(s, patch_inputs=s.patch_inputs * frames)
    middle = top.integer("projector_hidden_size", low=1, high=LARGEST_WIDTH) or text_hidden
    kind = Vit(patch_bias=False, positions=False, pre_norm=True, final_norm=False)
    weights = vit_weights(v, shape, kind)
    weights += two_layers(s.hidden, middle, text_hidden, bias=top.flag("multimodal_projector_bias", default=True))
    weights += two_layers(text_hidden * merge * merge, middle, text_hidden, bias=True)
    return Tower("vision", weights, s.hidden, s.inner, s.layers)


def lfm2_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """SigLIP 2 for any resolution, pixels shuffled together, two layers (lfm2_vl.py, lfm2_siglip2.py)."""
    s = vit_shape(v)
    shape = replace(s, positions=v.integer("num_patches", low=1) or 256)
    wide = s.hidden * (top.integer("downsample_factor", low=1) or 2) ** 2
    middle = top.integer("projector_hidden_size", low=1, high=LARGEST_WIDTH) or 2560
    bias = top.flag("projector_bias", default=True)
    projector = tuple(replace(w, split="none") for w in two_layers(wide, middle, text_hidden, bias=bias))
    if top.flag("projector_use_layernorm", default=True):
        projector += (norm("multi_modal_projector.layer_norm", wide, bias=True, part="projector"),)
    return Tower("vision", vit_weights(v, shape, Vit()) + projector, s.hidden, s.inner, s.layers)


def gemma4_patches(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """Gemma 4 without a tower: patches through one matrix with three norms (gemma4_unified.py)."""
    pooled = v.required("patch_size") * (v.integer("pooling_kernel_size", low=1) or 1)
    side, width = v.integer("model_patch_size", low=1) or pooled, v.required("mm_embed_dim", high=LARGEST_WIDTH)
    inputs = 3 * side * side
    weights = (
        norm("vision_embedder.patch_ln1", inputs, bias=True, part="vision"),
        Weight("vision_embedder.patch_dense", "vision", (Span(width),), inputs, "rows", bias=True),
        *(norm(f"vision_embedder.{n}", width, bias=True, part="vision") for n in ("patch_ln2", "pos_norm")),
        matrix("vision_embedder.pos_embedding", "vision", 2 * v.required("mm_posemb_size"), width),
        matrix("embed_vision.embedding_projection", "projector", text_hidden, width),
    )
    return Tower("vision", weights, width)


def step3_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """Step 3's CLIP-like tower, two down-sampling convolutions and one layer (step3_vl.py)."""
    s, out = vit_shape(v), v.required("output_hidden_size", high=LARGEST_WIDTH)
    projector = (
        matrix("vit_downsampler", "projector", out, s.hidden * 4, bias=True),
        matrix("vit_downsampler2", "projector", 2 * out, out * 9, bias=True),
        matrix("vit_large_projector", "projector", text_hidden, 2 * out, bias=top.flag("projector_bias")),
    )
    kind = Vit(class_token=True, final_norm=False)
    return Tower("vision", vit_weights(v, s, kind) + projector, s.hidden, s.inner, s.layers)


def mimo_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """MiMo-V2-Omni's gated blocks with grouped heads, a sink each in windowed ones (mimo_v2_omni.py)."""
    s = vit_shape(v)
    heads, kv_heads = s.heads, v.integer("num_key_value_heads", low=1) or s.heads
    keys_dim, values_dim = v.required("qk_channels"), v.required("kv_channels")
    spans = (Span(heads * keys_dim, heads), Span(kv_heads * keys_dim, kv_heads), Span(kv_heads * values_dim, kv_heads))
    block = (
        *(norm(f"blocks.norm{i}", s.hidden, part="vision") for i in (1, 2)),
        Weight("blocks.attn.qkv", "vision", spans, s.hidden, "rows", bias=True),
        Weight("blocks.attn.proj", "vision", (Span(s.hidden),), heads * values_dim, "columns", bias=True),
        Weight("blocks.mlp.gate_up_proj", "vision", (Span(s.inner), Span(s.inner)), s.hidden, "rows", bias=True),
        Weight("blocks.mlp.down_proj", "vision", (Span(s.hidden),), s.inner, "columns", bias=True),
    )
    windowed = s.layers - len(v.integers("fullatt_block_indexes")) if v.flag("use_sink") else 0
    wide = s.hidden * (v.integer("spatial_merge_size", low=1) or 2) ** 2
    weights = (
        matrix("patch_embed", "vision", s.hidden, s.patch_inputs),
        *block * s.layers,
        *(norm("blocks.attn.sinks", heads, part="vision"),) * windowed,
        norm("merger.ln_q", s.hidden, part="projector"),
        *two_layers(wide, wide, v.integer("out_hidden_size", low=1, high=LARGEST_WIDTH) or text_hidden, bias=False),
    )
    return Tower("vision", weights, s.hidden, s.inner, s.layers)


def perception_encoder(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """Step 3.7's and Step3-VL-10B's encoder with down-sampling convolutions in it (step_vl.py, step3p7.py)."""
    width, layers = v.required("width", high=LARGEST_WIDTH), v.required("layers", high=1024)
    heads, patch = v.required("heads"), v.required("patch_size")
    inner = int(width * (v.number("mlp_ratio", high=1024) or 4))
    side = (v.integer("image_size", low=1) or 0) // max(1, patch)
    s = VitShape(width, layers, heads, inner, 3 * patch * patch, side * side)
    kind = Vit(
        patch_bias=False, class_token=v.flag("use_cls_token"), positions=v.flag("use_abs_posemb", default=True),
        pre_norm=v.flag("use_ln_pre", default=True), final_norm=v.flag("use_ln_post"),
        layer_scale=v.number("ls_init_value") is not None,
    )  # fmt: skip
    projector = (
        matrix("vit_downsampler1", "projector", 2 * width, 9 * width, bias=True),
        matrix("vit_downsampler2", "projector", 4 * width, 18 * width, bias=True),
        matrix("vit_large_projector", "projector", text_hidden, 4 * width, bias=top.flag("projector_bias")),
    )
    return Tower("vision", vit_weights(v, s, kind) + projector, width, inner, layers)


def _mlp(top: Keys, text_hidden: int) -> tuple[Weight, ...]:
    """DeepSeek's projector, plain or down-sampling, and the two vectors that part rows and views."""
    p = top.sub("projector_config") or Keys({})
    out, into = p.integer("n_embed", low=1) or text_hidden, p.integer("input_dim", low=1) or 1152
    ends = tuple(matrix(name, "projector", 1, out) for name in ("image_newline", "view_seperator"))
    if p.text("projector_type") != "downsample_mlp_gelu":
        return (matrix("projector.layers", "projector", out, into, bias=True), *ends)
    ratio, middle = p.integer("downsample_ratio", low=1) or 2, out * (p.integer("mlp_ratio", low=1) or 1)
    depth = p.integer("depth", low=2, high=64) or 2
    return (
        matrix("projector.layers.0", "projector", middle, into * ratio * ratio, bias=True),
        *(matrix(f"projector.layers.{2 * i}", "projector", middle, middle, bias=True) for i in range(1, depth - 1)),
        matrix(f"projector.layers.{2 * depth - 2}", "projector", out, middle, bias=True),
        *ends,
    )


def _sam() -> tuple[Weight, ...]:
    """SAM's ViT-B of 1024 pixels: 12 layers, four of them global, with relative positions, a neck, two convolutions."""
    width, head, out = 768, 64, 256
    block = (
        *(norm(f"sam.blocks.norm{i}", width, bias=True, part="vision") for i in (1, 2)),
        matrix("sam.blocks.attn.qkv", "vision", 3 * width, width, bias=True),
        matrix("sam.blocks.attn.proj", "vision", width, width, bias=True),
        matrix("sam.blocks.mlp.lin1", "vision", 4 * width, width, bias=True),
        matrix("sam.blocks.mlp.lin2", "vision", width, 4 * width, bias=True),
    )
    near = matrix("sam.blocks.attn.rel_pos", "vision", 2 * (2 * 14 - 1), head)
    far = matrix("sam.blocks.attn.rel_pos", "vision", 2 * (2 * 64 - 1), head)
    return (
        matrix("sam.patch_embed", "vision", width, 3 * 16 * 16, bias=True),
        matrix("sam.pos_embed", "vision", 64 * 64, width),
        *(*block, near) * 8,
        *(*block, far) * 4,
        matrix("sam.neck.0", "vision", out, width),
        matrix("sam.neck.2", "vision", out, 9 * out),
        *(norm(f"sam.neck.{i}", out, bias=True, part="vision") for i in (1, 3)),
        matrix("sam.net_2", "vision", 512, 9 * out),
        matrix("sam.net_3", "vision", 1024, 9 * 512),
    )
