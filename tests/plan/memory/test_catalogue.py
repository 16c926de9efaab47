"""Every model of the catalogue gets a budget on old and new releases, alone and on eight cards."""

from __future__ import annotations

import pytest

from trimtab.facts.catalogue.lookup import Entry, entries, find_model
from trimtab.facts.model import ModelFacts, read_model
from trimtab.plan.memory import Budget, Card, Given, budget, release, resolve

H200 = Card("H200", 139.8, 9.0, nvlink=True)
VERSIONS = ("0.6.6", "0.8.5", "0.11.0", "0.20.0", "0.26.0", "0.33.0")


def plan(model: ModelFacts, version: str, ranks: int) -> Budget:
    cards = [H200] * ranks
    return budget(resolve(Given({"tensor_parallel_size": ranks}), release(version), model, cards), model, cards)


@pytest.mark.parametrize("entry", entries(), ids=lambda e: str(e.ids[0]))
def test_every_model_has_a_budget(entry: Entry) -> None:
    model = read_model(entry.config)
    for version in VERSIONS:
        for ranks in (1, 8):
            found = plan(model, version, ranks)
            assert found.reasons
            if not found.known:
                continue
            served = model.stored_bytes / (1 << 30) / ranks / (2 if model.stored_bytes > 3 * model.parameters else 1)
            assert 0.9 * served <= found.ranks[0].weights.value <= 1.6 * served + 1.5
            if found.layout.groups:
                assert found.layout.block_bytes(found.layout.whole) > 0
                assert found.layout.request_blocks(64) > 0


def test_an_encoder_caches_nothing_and_fits() -> None:
    found = plan(find_model("BAAI/bge-m3").facts(), "0.26.0", 1)
    assert found.capacity.kv_cache_tokens == 0
    assert found.verdict == "fits"


def test_roberta_counts_positions_from_behind_its_padding() -> None:
    """8,194 rows of the position table, pad_token_id 1: 8,192 tokens (roberta.py)."""
    assert find_model("BAAI/bge-m3").facts().max_positions == 8192
