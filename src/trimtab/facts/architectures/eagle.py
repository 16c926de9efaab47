"""EAGLE drafts that are checkpoints of their own (llama_eagle.py, llama_eagle3.py): a joining matrix and few layers."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import matrix, norm
from trimtab.facts.architectures.decoder import Outline, decoder_layers, outline
from trimtab.facts.architectures.shape import read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import LayerFacts
from trimtab.facts.weights import Span, Weight

SHARED = "embedding and output matrix are the target's where the draft stores none of its own"


def eagle(keys: Keys, traits: Traits) -> Outline:
    """EAGLE 1: token and hidden state joined by `fc`; the output matrix is the target's."""
    shape = read_shape(keys)
    layers = decoder_layers(keys, shape, traits)
    found = outline(keys, shape, traits, layers)
    fc = matrix("fc", "mtp", shape.hidden, 2 * shape.hidden, bias=keys.flag("eagle_fc_bias"))
    return replace(found, embedding=(*found.embedding, fc), head=(), tied=True, notes=(SHARED,))


def eagle3(keys: Keys, traits: Traits) -> Outline:
    """EAGLE 3: hidden states of several target layers joined by `fc`, queries twice as wide, a smaller vocabulary."""
    shape = read_shape(keys)
    target = keys.integer("target_hidden_size", low=1) or shape.hidden
    states = keys.integer("num_aux_hidden_states", low=1) or 3
    drafted = keys.integer("draft_vocab_size", low=1) or shape.vocab
    found_layers = decoder_layers(keys, shape, traits)
    layers = (*(_wide(layer, shape.hidden) for layer in found_layers[:1]), *found_layers[1:])
    found = outline(keys, shape, traits, layers)
    fc = matrix("fc", "mtp", shape.hidden, states * target)
    head = (
        norm("norm", shape.hidden),
        Weight("lm_head", "lm_head", (Span(drafted),), shape.hidden, "vocab"),
        Weight("draft_id_to_target_id", "other", (Span(drafted),), element_bytes=8),
    )
    return replace(found, embedding=(*found.embedding, fc), head=head, tied=False, notes=(SHARED,))


def _wide(layer: LayerFacts, hidden: int) -> LayerFacts:
    """The first layer sees the token's embedding beside the joined state, with a norm for each."""
    weights = tuple(replace(w, into=2 * hidden) if w.name.endswith("qkv_proj") else w for w in layer.weights)
    return replace(layer, weights=(*weights, norm("hidden_norm", hidden)))
