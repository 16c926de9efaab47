"""Whisper (whisper.py): an encoder of audio, and a decoder whose layers attend to the text and to the audio."""

from __future__ import annotations

from trimtab.facts.architectures.audio import whisper_encoder
from trimtab.facts.architectures.blocks import attention_weights, matrix, mlp_weights, norm
from trimtab.facts.architectures.decoder import Outline
from trimtab.facts.architectures.shape import LARGEST_WIDTH, MOST_LAYERS, Shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Attention, LayerFacts
from trimtab.facts.weights import Span, Weight


def whisper(keys: Keys, traits: Traits) -> Outline:
    """Each decoder layer is two here, since it caches twice: the text's keys, and the audio's with the feed-forward."""
    width = keys.required("d_model", high=LARGEST_WIDTH)
    heads, layers = keys.required("decoder_attention_heads"), keys.required("decoder_layers", high=MOST_LAYERS)
    inner, vocab = keys.required("decoder_ffn_dim", high=LARGEST_WIDTH), keys.required("vocab_size", high=1 << 24)
    dim = width // max(1, heads)
    shape = Shape(width, layers, heads, heads, dim, inner, vocab)
    own, cross = (Attention("mha", heads, heads, dim, dim, cross=c) for c in (False, True))
    pair = (
        LayerFacts(own, (norm("norm", width, bias=True), *_projections(shape, own, "self_attn"))),
        LayerFacts(
            cross,
            (
                *(norm(f"norm{i}", width, bias=True) for i in range(2)),
                *_projections(shape, cross, "encoder_attn"),
                *mlp_weights(width, inner, gated=False, bias=True),
            ),
            intermediate=inner,
        ),
    )
    embedding = (
        Weight("embed_tokens", "embedding", (Span(vocab),), width, "vocab"),
        matrix("embed_positions", "embedding", keys.required("max_target_positions"), width),
    )
    head = (norm("layer_norm", width, bias=True),)
    encoder = whisper_encoder(keys)
    return Outline(shape, embedding, pair * layers, head, tied=True, rotary=False, towers=(encoder,))


def _projections(shape: Shape, a: Attention, name: str) -> tuple[Weight, ...]:
    """Attention whose keys have no bias in the checkpoint."""
    qkv, out = attention_weights(shape, a, o_bias=True, name=name)
    return qkv, matrix(f"{name}.qv_bias", "attention", 2 * shape.hidden, 1), out
