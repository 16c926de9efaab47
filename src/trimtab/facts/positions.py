"""How far a model's positions reach: its config's limit and what rope scaling makes of it, as vLLM derives them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from trimtab.errors import ModelError
from trimtab.facts.keys import Keys
from trimtab.messages import msg

POSITION_KEYS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length", "max_target_positions",
    "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip
"""In vLLM's order (config/model.py, _get_and_verify_max_len): the smallest counts, but model_max_length before all."""
UNSCALED = ("default", "mrope", "su", "longrope", "llama3", "linear_none")
KINDS = frozenset({
    "default", "linear", "dynamic", "ntk", "yarn", "llama3", "mllama4", "longrope", "su", "deepseek_yarn",
    "deepseek_llama_scaling", "mrope", "bailing_mrope", "xdrope", "proportional", "openpangu", "telechat3-yarn",
})  # fmt: skip
"""Types of rope scaling that some release reads (0.2 to 0.33 model_executor/layers/rotary_embedding)."""
NO_SCALING: Mapping[str, object] = MappingProxyType({})


def rope_scaling(keys: Keys) -> Mapping[str, object]:
    """The config's `rope_scaling` (or transformers 5's `rope_parameters`), with its type under "rope_type"."""
    for name in ("rope_scaling", "rope_parameters"):
        value = keys.config.get(name)
        if value is None:
            continue
        if not isinstance(value, Mapping):
            raise ModelError(msg("the model's config has {name} = {value}", name=name, value=repr(value)[:80]))
        factor = value.get("factor")
        if factor is not None and (isinstance(factor, bool) or not isinstance(factor, int | float) or factor <= 0):
            shown = repr(factor)[:80]
            raise ModelError(msg("the model's config has {name} = {value}", name=f"{name}.factor", value=shown))
        kind = value.get("rope_type", value.get("type"))
        if isinstance(kind, str):
            if kind not in KINDS:
                keys.assumed.append(f"{name} of type {kind[:40]!r}, which no release knows, lengthens by its factor")
            return MappingProxyType({**value, "rope_type": kind})
        if value:
            return MappingProxyType({**value, "rope_type": "default"})
    return NO_SCALING


def shortest_positions(keys: Keys) -> int:
    """The smallest of the config's position limits, 0 when it names none."""
    found = {name: n for name in POSITION_KEYS if (n := keys.integer(name, low=1))}
    if not found:
        return 0
    name = min(found, key=lambda name: found[name])
    if not any(keys.given.get(given) is not None for given in POSITION_KEYS):
        keys.assumed.append(f"{name} = {found[name]} (the config class's default)")
    return found[name]


AFTER_PADDING = ("roberta", "xlm-roberta", "xlm-roberta-xl")
"""Models that count positions from `pad_token_id` + 1 (0.33 roberta.py): rows before it hold no token."""


def positions(keys: Keys, rope: Mapping[str, object]) -> int:
    """The longest context that vLLM derives: yarn, linear and dynamic scaling multiply it; others are within it."""
    longest = keys.integer("model_max_length", low=1) or shortest_positions(keys)
    if not longest:
        return 0
    if keys.text("model_type") in AFTER_PADDING:
        padding = keys.integer("pad_token_id")
        return max(0, longest - (1 if padding is None else padding) - 1)
    factor = rope.get("factor")
    kind = rope.get("rope_type")
    if keys.text("model_type").startswith("gemma3"):
        return longest  # its limit is scaled already (config/model.py, _get_and_verify_max_len)
    if kind in ("su", "longrope", "llama3", "default", "mrope") or not isinstance(factor, int | float) or factor <= 0:
        return longest
    original = rope.get("original_max_position_embeddings")
    if kind == "yarn" and isinstance(original, int) and original > 0:
        return int(original * factor)
    return int(longest * factor)
