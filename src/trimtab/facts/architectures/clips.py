"""Models whose tower has sizes that stand in code and not in the config: Phi-3-V, Molmo, Phi-4-MM, Gemma 3n."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import matrix, norm
from trimtab.facts.architectures.decoder import Outline, decoder_layers, outline
from trimtab.facts.architectures.shape import read_shape
from trimtab.facts.architectures.speech import gemma3n_embedder
from trimtab.facts.architectures.towers import Vit, VitShape, two_layers, vit_weights
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import BESIDE, Keys
from trimtab.facts.layers import Tower
from trimtab.facts.weights import Span, Weight

CLIP_L = VitShape(1024, 23, 16, 4096, 3 * 14 * 14, 24 * 24)
"""OpenAI's CLIP-L without its last layer, whose output neither model reads."""
CLIP = Vit(patch_bias=False, class_token=True, pre_norm=True, final_norm=False)
MOBILENET = "mobilenetv5_300m_enc"
MOBILENET_WEIGHTS = 294_126_912
"""Counted in timm 1.0.31's model of that name, without a classifier."""
ADDED_TOKENS = 128
"""Rows that Molmo's embedding has more than its output matrix (molmo.py)."""


def phi3_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """Four patches side by side into two layers, and the two vectors that part rows and views (phi3v.py)."""
    wide = 4 * CLIP_L.hidden
    projector = (
        *(replace(w, split="none") for w in two_layers(wide, text_hidden, text_hidden, bias=True)),
        matrix("vision_embed_tokens.glb_GN", "projector", 1, wide),
        matrix("vision_embed_tokens.sub_GN", "projector", 1, wide),
    )
    return Tower("vision", vit_weights(v, CLIP_L, CLIP) + projector, CLIP_L.hidden, CLIP_L.inner, CLIP_L.layers)


def phi4_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """SigLIP without its last layer, two layers, and the two vectors that part rows and views (phi4mm.py)."""
    s = VitShape(1152, 26, 16, 4304, 3 * 14 * 14, 32 * 32)
    projector = (
        *(replace(w, split="none") for w in two_layers(s.hidden, text_hidden, text_hidden, bias=True)),
        matrix("vision_encoder.glb_GN", "projector", 1, s.hidden),
        matrix("vision_encoder.sub_GN", "projector", 1, s.hidden),
    )
    return Tower("vision", vit_weights(v, s, Vit(final_norm=False)) + projector, s.hidden, s.inner, s.layers)


def gemma3n_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """MobileNet V5 as timm builds it, whole on every rank, and an embedder (gemma3n_mm.py)."""
    name = v.text("architecture", default=MOBILENET)
    if name != MOBILENET:
        top.missing.append(f"{BESIDE}the vision tower {name}")
    width = v.integer("hidden_size", low=1) or 2048
    weights = (norm("vision_tower", MOBILENET_WEIGHTS, part="vision"),)
    return Tower("vision", weights + gemma3n_embedder(v, width, text_hidden, "embed_vision"), width, splits=False)


def molmo_vision(top: Keys, v: Keys, text_hidden: int) -> Tower:
    """Two of CLIP's layers side by side, pooled by attention, and a gated layer into the decoder (molmo.py)."""
    width, wide = CLIP_L.hidden, 2 * CLIP_L.hidden
    heads = Span(width, CLIP_L.heads)
    inner = (top.integer("intermediate_size", low=2) or 2) // 2
    bridge = (
        Weight("image_pooling_2d.wqkv", "projector", (heads, heads, heads), wide, "rows", bias=True),
        Weight("image_pooling_2d.wo", "projector", (Span(width),), width, "columns", bias=True),
        matrix("pad_embed", "projector", 2, wide),
        Weight("image_projector.gate_up", "projector", (Span(inner), Span(inner)), width, "rows"),
        Weight("image_projector.down", "projector", (Span(text_hidden),), inner, "columns"),
    )
    return Tower("vision", vit_weights(v, CLIP_L, CLIP) + bridge, width, CLIP_L.inner, CLIP_L.layers)


def molmo(keys: Keys, traits: Traits) -> Outline:
    """Molmo's decoder: OLMo's or Qwen2's, whose config gives the widths of gate and up together."""
    shape = read_shape(keys)
    shape = replace(shape, intermediate=shape.intermediate // 2)
    kind = replace(traits, qk_norm="full" if keys.flag("attention_layer_norm") else "")
    found = outline(keys, shape, kind, decoder_layers(keys, shape, kind))
    added = Weight("new_embedding", "embedding", (Span(ADDED_TOKENS),), shape.hidden)
    return replace(found, embedding=(*found.embedding, added))
