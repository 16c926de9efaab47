"""Layers that speculative decoding adds: a draft that ships with the model, or an EAGLE head of one layer."""

from __future__ import annotations

from trimtab.facts.layers import LayerFacts
from trimtab.facts.model import ModelFacts
from trimtab.facts.weights import Span, Weight
from trimtab.messages import Message, msg
from trimtab.plan.memory.settings import Settings

EAGLE3_VOCABULARY = 32000
"""Rows of the output matrix that EAGLE-3 heads bring; the checkpoint of the head would tell."""


def draft_layers(settings: Settings, model: ModelFacts) -> tuple[LayerFacts, ...]:
    """Decoder layers of the draft; each caches keys and values beside the model's own."""
    method = settings.speculative_method
    if method is None:
        return ()
    shipped = [layer for draft in model.drafts if draft.method == method for layer in draft.layers]
    if shipped or not method.startswith("eagle"):
        return tuple(shipped)
    full = [x for x in model.layers if x.attention and not x.attention.window and not x.moe]
    return tuple(full[-1:])


def draft_weights(settings: Settings, model: ModelFacts) -> tuple[Weight, ...]:
    """Weights of the draft beside its layers: shipped ones, or an EAGLE head's projection and output matrix."""
    method = settings.speculative_method
    if method is None:
        return ()
    shipped = [w for draft in model.drafts if draft.method == method for w in draft.weights]
    if shipped or not method.startswith("eagle"):
        return tuple(shipped)
    hidden = model.hidden_size
    if method == "eagle3":
        return (_matrix("fc", hidden, 3 * hidden), _matrix("lm_head", EAGLE3_VOCABULARY, hidden))
    return (_matrix("fc", hidden, 2 * hidden),)


def draft_assumptions(settings: Settings, model: ModelFacts) -> tuple[Message, ...]:
    """What is taken for granted of a draft that no fact describes."""
    method = settings.speculative_method
    if method is None or method in ("ngram", "ngram_gpu", "suffix") or any(d.method == method for d in model.drafts):
        return ()
    if method.startswith("eagle"):
        return (msg("the EAGLE head is one layer like the model's own"),)
    return (msg("the draft of method {method} is not reckoned with: its size is not known", method=method),)


def _matrix(name: str, rows: int, into: int) -> Weight:
    return Weight(f"draft.{name}", "mtp", (Span(rows),), into)
