"""Layers for multi-token prediction that ship with a checkpoint; vLLM loads them only for speculative decoding."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import matrix, norm
from trimtab.facts.architectures.decoder import Outline
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Draft, LayerFacts
from trimtab.facts.weights import Span, Weight

OWN_EMBEDDING = ("DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM", "Glm4MoeForCausalLM",
                 "Glm4MoeLiteForCausalLM")  # fmt: skip
"""Architectures whose checkpoints store the embedding and output matrix once more in each such layer."""


def with_drafts(outline: Outline, keys: Keys, architecture: str) -> Outline:
    """Add the MTP layers that the config counts: each is one more decoder layer, with norms and a joining matrix."""
    count = keys.integer("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", high=64) or 0
    if not count or not outline.layers:
        return outline
    body = _draft_body(outline.layers)
    hidden = outline.shape.hidden
    joins = (
        norm("enorm", hidden, part="mtp"),
        norm("hnorm", hidden, part="mtp"),
        matrix("eh_proj", "mtp", hidden, 2 * hidden),
        norm("shared_head.norm", hidden, part="mtp"),
    )
    vocab = (Span(outline.shape.vocab),)
    own: tuple[Weight, ...] = ()
    if architecture in OWN_EMBEDDING:
        own = (
            Weight("embed_tokens", "embedding", vocab, hidden, "vocab"),
            Weight("shared_head.head", "lm_head", vocab, hidden, "vocab"),
        )
    if keys.has("mtp_num_hidden_layers"):
        draft = Draft("mtp", (body,) * count, joins)
    else:
        layer = replace(body, weights=tuple(replace(w, packable=False) for w in joins) + body.weights)
        draft = Draft("mtp", (layer,) * count, own)
    return replace(outline, drafts=(*outline.drafts, draft))


def _draft_body(layers: tuple[LayerFacts, ...]) -> LayerFacts:
    """The kind of layer that MTP repeats: the last one with attention."""
    return next((layer for layer in reversed(layers) if layer.attention is not None), layers[-1])
