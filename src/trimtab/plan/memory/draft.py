"""Layers that speculative decoding adds: a draft of the model's own or beside it, or an EAGLE head of one layer."""

from __future__ import annotations

from trimtab.facts.layers import LayerFacts
from trimtab.facts.model import ModelFacts
from trimtab.facts.weights import Part, Span, Weight
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
    shared = _shared_parts(settings, method)
    shipped = [w for draft in model.drafts if draft.method == method for w in draft.weights if w.part not in shared]
    if shipped or not method.startswith("eagle"):
        return tuple(shipped)
    hidden = model.hidden_size
    if method == "eagle3":
        return (_matrix("fc", hidden, 3 * hidden), _matrix("lm_head", EAGLE3_VOCABULARY, hidden))
    return (_matrix("fc", hidden, 2 * hidden),)


def _shared_parts(settings: Settings, method: str) -> tuple[Part, ...]:
    """What the draft takes from the target once it is loaded, dropping its own copy.

    V1's proposers share the embedding unless a pipeline puts it on another rank, and the output matrix except EAGLE-3's
    (v1/spec_decode/eagle.py `load_model` from 0.9, MTP's `shared_head` from 0.16); a draft model keeps both
    (draft_model.py of 0.15).
    """
    if method not in ("eagle", "eagle3", "mtp") or settings.engine == "V0" or settings.version < (0, 9):
        return ()
    embedding: tuple[Part, ...] = ("embedding",) if settings.pipeline_parallel_size == 1 else ()
    own_head = method == "eagle3" or (method == "mtp" and settings.version < (0, 16))
    return embedding if own_head else (*embedding, "lm_head")


def draft_assumptions(settings: Settings, model: ModelFacts) -> tuple[Message, ...]:
    """What is taken for granted of a draft that no fact describes."""
    method = settings.speculative_method
    if method is None or method in ("ngram", "ngram_gpu", "suffix"):
        return ()
    if any(d.method == method for d in model.drafts):
        one = settings.draft_tensor_parallel_size not in (None, settings.tensor_parallel_size)
        return (_SPLIT,) if one and settings.engine == "V1" else ()
    if method.startswith("eagle"):
        return (msg("the EAGLE head is one layer like the model's own"),)
    return (msg("the draft of method {method} is not reckoned with: its size is not known", method=method),)


_SPLIT = msg("the draft is split over all tensor ranks, whatever draft_tensor_parallel_size says")


def _matrix(name: str, rows: int, into: int) -> Weight:
    return Weight(f"draft.{name}", "mtp", (Span(rows),), into)
