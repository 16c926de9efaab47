"""Vision towers with a bridge of their own into the decoder: resamplers, down-sampling layers, two encoders at once."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import matrix, norm
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
    """Kimi-K2.5's MoonViT of images and clips, its projector replicated (kimi_k25_vit.py)."""
    s = vit_shape(v)
    side = v.integer("init_pos_emb_height", low=1) or 64
    wide = s.hidden * 4
    shape = replace(s, positions=side * side)
    first, second = two_layers(wide, wide, text_hidden, bias=True)
    projector = (
        norm("mm_projector.pre_norm", s.hidden, bias=True, part="projector"),
        replace(first, split="none"),
        replace(second, split="none"),
    )
    return Tower("vision", vit_weights(v, shape, Vit()) + projector, s.hidden, s.inner, s.layers)


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
