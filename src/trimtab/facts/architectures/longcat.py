"""LongCat Flash (longcat_flash.py): each block attends twice, with a dense part after each and experts beside both."""

from __future__ import annotations

from trimtab.facts.architectures.blocks import mla_weights, mlp_weights, moe_weights, norm
from trimtab.facts.architectures.decoder import Outline, latent_attentions, outline
from trimtab.facts.architectures.experts import read_moe
from trimtab.facts.architectures.shape import read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import LayerFacts
from trimtab.facts.weights import Span, Weight


def longcat_flash(keys: Keys, traits: Traits) -> Outline:
    """A block is two layers here, since it caches twice; the router also knows experts that do nothing."""
    shape = read_shape(keys)
    latent, nope = latent_attentions(keys, shape)[0], keys.integer("qk_nope_head_dim") or 0
    half = (
        *(norm(f"norm{i}", shape.hidden) for i in range(2)),
        *mla_weights(shape, latent, nope=nope),
        *mlp_weights(shape.hidden, shape.intermediate, name="mlps"),
    )
    moe = read_moe(keys, shape.intermediate)
    experts: tuple[Weight, ...] = ()
    if moe is not None:
        routed = Span(moe.experts + (keys.integer("zero_expert_num") or 0))
        size = 4 if keys.text("router_dtype") == "float32" else 2
        experts = (
            *(w for w in moe_weights(shape.hidden, moe) if w.part != "router"),
            Weight("mlp.router.classifier", "router", (routed,), shape.hidden, element_bytes=size),
            Weight("mlp.router.e_score_correction_bias", "router", (routed,), element_bytes=size),
        )
    else:
        keys.missing.append("n_routed_experts")
    pair = (
        LayerFacts(latent, half, intermediate=shape.intermediate),
        LayerFacts(latent, half + experts, moe, moe.intermediate if moe else shape.intermediate),
    )
    return outline(keys, shape, traits, pair * shape.layers)
