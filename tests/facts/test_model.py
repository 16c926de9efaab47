"""What read_model makes of real configs: the anchors that other estimators get wrong, and unusable input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtab.facts.model import ModelFacts, read_model

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"
GIB = 1 << 30


def facts_of(name: str) -> ModelFacts:
    return read_model(json.loads((FIXTURES / f"{name}.json").read_text()))


@pytest.mark.parametrize(("name", "gib"), [("qwen2.5-72b", 135.43), ("llama-3.1-8b", 14.96), ("qwen2.5-7b", 14.19)])
def test_stored_weights(name: str, gib: float) -> None:
    facts = facts_of(name)
    assert round(facts.stored_bytes / GIB, 2) == gib
    assert facts.missing == ()


@pytest.mark.parametrize(("name", "kib"), [("qwen2.5-72b", 320), ("llama-3.1-8b", 128), ("mistral-7b-v0.1", 128)])
def test_kv_per_token(name: str, kib: float) -> None:
    assert facts_of(name).kv_elements_per_token() * 2 / 1024 == kib
