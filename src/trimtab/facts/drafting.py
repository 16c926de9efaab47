"""Drafts that are checkpoints of their own: which method runs one, and its layers and weights beside the target's."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import matrix
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Draft
from trimtab.facts.model import ModelFacts, read_model
from trimtab.facts.weights import Span, Weight

WITHOUT_MODEL = ("ngram", "ngram_gpu", "suffix", "mtp", "custom_class", "extract_hidden_states")
"""Methods that load no checkpoint beside the target's."""
_BY_NAME = (("eagle-", "eagle"), ("eagle3", "eagle3"), ("dflash", "dflash"), ("dspark", "dspark"))
_BY_TYPE = ("medusa", "mlp_speculator")


def draft_method(given: str | None, model: str | None, draft_config: Mapping[str, object] | None = None) -> str:
    """The method that vLLM runs (config/speculative.py `__post_init__` of 0.26): as given, else by the draft's name.

    "mtp" stands for every name of the layers that ship with a checkpoint (deepseek_mtp and the like).
    """
    if given and given.endswith("mtp"):
        return "mtp"
    if given and given not in ("draft_model", "draft"):
        return given.strip("[]")
    name = (model or "").lower()
    if name in ("ngram", "[ngram]"):
        return "ngram"
    found = next((method for part, method in _BY_NAME if part in name), None)
    if found is not None:
        return found
    kind = str((draft_config or {}).get("model_type", ""))
    return kind if kind in _BY_TYPE else "draft_model"


def read_draft(config: Mapping[str, object], method: str, tokens: int, target: ModelFacts) -> Draft | None:
    """The draft of this config.json under `method`; None for a kind whose size is not known.

    Medusa has as many heads as tokens are drafted (transformers_utils/configs/medusa.py `num_lookahead_tokens`).
    """
    if method == "medusa":
        return _medusa(Keys(config), tokens, target)
    facts = read_model(_as_loaded(config, method))
    if facts.missing or method not in ("eagle", "eagle3", "draft_model"):
        return None
    embedding = () if facts.tied_embeddings and method == "eagle3" else facts.embedding
    return Draft(method, facts.layers, (*embedding, *facts.head))


def with_draft(target: ModelFacts, draft: Draft) -> ModelFacts:
    """The target with this draft in place of what its own checkpoint may bring for the method."""
    others = tuple(d for d in target.drafts if d.method != draft.method)
    return replace(target, drafts=(*others, draft))


def _as_loaded(config: Mapping[str, object], method: str) -> Mapping[str, object]:
    """The config as vLLM's EAGLEConfig and SpeculatorsConfig make it (transformers_utils/configs)."""
    inner = config.get("transformer_layer_config")
    if isinstance(inner, Mapping):
        kind = {"eagle": "EagleLlamaForCausalLM", "eagle3": "LlamaForCausalLMEagle3"}.get(method, "")
        return {**inner, **{k: v for k, v in config.items() if v is not None}, "architectures": [kind]}
    names = config.get("architectures")
    if method not in ("eagle", "eagle3") or not isinstance(names, list):
        return config
    prefix = method.capitalize()
    return {**config, "architectures": [_prefixed(str(name), prefix) for name in names]}


def _prefixed(name: str, prefix: str) -> str:
    return name if name.startswith("Eagle") or name.endswith("Eagle3") else prefix + name


def _medusa(keys: Keys, tokens: int, target: ModelFacts) -> Draft:
    """Residual blocks that every rank holds whole, and one output matrix per head (model_executor/models/medusa.py)."""
    hidden = keys.integer("hidden_size", low=1) or target.hidden_size
    layers = keys.integer("medusa_num_layers", "num_hidden_layers", low=0, high=64) or 1
    bias = keys.flag("medusa_fc_bias")
    one = keys.flag("original_lm_head")
    blocks = tuple(
        matrix(f"blocks.{head}.layers.{layer}", "mtp", hidden, hidden, bias=bias)
        for head in range(tokens)
        for layer in range(layers)
    )
    outputs = tuple(
        Weight(f"lm_heads.{head}", "mtp", (Span(target.vocab_size),), hidden, "vocab")
        for head in range(1 if one else tokens)
    )
    return Draft("medusa", (), blocks + outputs)
