"""Defaults of config classes by model_type, for keys that a config.json leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from trimtab import shipped


class _File(msgspec.Struct):
    source: str
    types: dict[str, dict[str, Any]]


NOT_TAKEN = frozenset({"hidden_size", "num_hidden_layers", "d_model", "n_embd", "n_layer", "n_layers"})
"""A config without these is no description of a model, whatever its class's default is."""


@cache
def _file() -> _File:
    data = shipped.read("trimtab.facts.architectures", "defaults.json")
    return msgspec.json.decode(data, type=_File)


@cache
def defaults_for(model_type: str, *, inner: bool = False) -> Mapping[str, Any]:
    """Sizes and switches of this model_type's config class (transformers; scripts/config-defaults writes the file).

    `inner`: of a config inside another, whose writer leaves out what equals the class's default, even the width.
    """
    found = _file().types.get(model_type, {})
    return found if inner else {k: v for k, v in found.items() if k not in NOT_TAKEN}
