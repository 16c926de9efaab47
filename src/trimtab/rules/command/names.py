"""What a model's name tells: the architecture of models that vLLM's own tests serve, and of their families; no rule.

Sizes are not known then; `CommandContext.model` stays what it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from trimtab.engine.supported import example_architecture, examples
from trimtab.facts.catalogue.lookup import entries, plain_names

_SIZE = re.compile(r"(?<![a-z0-9.])e?\d+(?:[.x]\d+)*[bm](?![a-z0-9])")
_ACTIVE = re.compile(r"[-_]a\d+(?:\.\d+)?b(?![a-z0-9])")
_TUNING = re.compile(
    r"[-_](instruct|chat|it|pt|base|thinking|hf|preview|reasoning|v\d+(\.\d+)*|\d{4,8}|\d\d-\d{4})(?=$|[-_])"
)


def architecture_named(model: str) -> str | None:
    """The architecture of a model of this name, or of its family in another size; None where the name tells none."""
    names = plain_names(model)
    found = example_architecture(names)
    if found is not None:
        return found
    return next((_families()[key] for key in map(_family, names) if key in _families()), None)


@cache
def _families() -> Mapping[str, str]:
    """Family -> the architecture that all its models that are known have."""
    kinds: dict[str, set[str]] = {}
    known = {i: str(e.config["architectures"][0]) for e in entries() for i in e.ids}
    for name, architecture in {**examples(), **known}.items():
        family = _family(name.lower().rpartition("/")[2])
        if "#" in family:
            kinds.setdefault(family, set()).add(architecture)
    return {family: found.pop() for family, found in kinds.items() if len(found) == 1}


def _family(name: str) -> str:
    """ "qwen2.5-vl-#" of "qwen2.5-vl-7b-instruct"; experts are kept apart: "qwen3-# active" of "qwen3-30b-a3b"."""
    active = _ACTIVE.search(name) is not None
    short = _TUNING.sub("", _SIZE.sub("#", _ACTIVE.sub("", name)))
    return f"{short} active" if active else short
