"""Configs that are damaged, absurd or of an unknown architecture: named, bounded, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import ModelError
from trimtab.facts.catalogue.lookup import entries
from trimtab.facts.model import read_model
from trimtab.facts.tensors import Tensor, TensorHeaders

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"
LLAMA: dict[str, Any] = json.loads((FIXTURES / "llama-3.1-8b.json").read_text())


@pytest.mark.parametrize("config", [None, [], "text", 3, True])
def test_not_an_object(config: object) -> None:
    with pytest.raises(ModelError, match=f"config is a {type(config).__name__}, not a JSON object"):
        read_model(config)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_size", "4096"),
        ("hidden_size", None),
        ("num_hidden_layers", -1),
        ("num_hidden_layers", 10**9),
        ("num_hidden_layers", True),
        ("num_attention_heads", 0),
        ("num_attention_heads", 2.5),
        ("num_key_value_heads", "eight"),
        ("vocab_size", [128256]),
        ("vocab_size", float("inf")),
        ("intermediate_size", 1 << 60),
        ("head_dim", {}),
        ("tie_word_embeddings", "yes"),
        ("rope_scaling", "llama3"),
        ("architectures", "LlamaForCausalLM"),
        ("torch_dtype", 16),
        ("max_position_embeddings", "131072"),
        ("text_config", "yes"),
        ("language_config", [1]),
    ],
)
def test_an_unusable_value_is_named_with_its_key(key: str, value: object) -> None:
    with pytest.raises(ModelError) as caught:
        read_model({**LLAMA, key: value})
    assert f"{key} = " in str(caught.value)


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers"])
def test_an_absent_size_is_missing(key: str) -> None:
    facts = read_model({k: v for k, v in LLAMA.items() if k != key})
    assert key in facts.missing


def test_an_unknown_architecture_has_bounds() -> None:
    facts = read_model({**LLAMA, "architectures": ["NewThingForCausalLM"], "model_type": "newthing"})
    assert "architecture NewThingForCausalLM" in facts.missing
    bounds = {b.name: b for b in facts.bounds}
    assert bounds["kv_elements_per_token"].high == 2 * 32 * 32 * 128
    assert bounds["stored_bytes"].low == 128256 * 4096 / 2


def test_headers_make_the_bytes_of_an_unknown_architecture_certain() -> None:
    headers = TensorHeaders((Tensor("x", "BF16", (1000,), 2000),))
    facts = read_model({**LLAMA, "architectures": ["NewThingForCausalLM"]}, tensors=headers)
    assert facts.stored_bytes_measured == 2000
    assert next(b for b in facts.bounds if b.name == "stored_bytes").high == 2000


def test_a_default_of_the_config_class_is_assumed_and_said() -> None:
    facts = read_model({k: v for k, v in LLAMA.items() if k != "vocab_size"})
    assert facts.vocab_size == 32000
    assert any("vocab_size = 32000" in a for a in facts.assumed)


def test_an_unknown_quantisation_is_missing() -> None:
    facts = read_model({**LLAMA, "quantization_config": {"quant_method": "magic"}})
    assert facts.missing == ("quantisation method magic",)


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats()
    | st.text(max_size=8)
    | st.just([])
    | st.just({})
)
CONFIGS = st.sampled_from([e.config for e in entries()])


@settings(max_examples=300, deadline=None)
@given(CONFIGS, st.data())
def test_any_change_of_any_config_is_read_or_refused(config: dict[str, Any], data: st.DataObject) -> None:
    changed = dict(config)
    for key in data.draw(st.lists(st.sampled_from(sorted(changed)), max_size=3)):
        if isinstance(changed[key], dict) and changed[key] and data.draw(st.booleans()):
            inner = data.draw(st.sampled_from(sorted(changed[key])))
            changed[key] = {**changed[key], inner: data.draw(VALUES)}
        else:
            changed[key] = data.draw(VALUES)
    try:
        facts = read_model(changed)
    except ModelError as error:
        message = str(error)
    else:
        message = ""
        assert facts.stored_bytes >= 0
    assert len(message) < 400


@pytest.mark.parametrize("key", ["intermediate_size", "max_position_embeddings"])
def test_every_default_of_the_config_class_is_said(key: str) -> None:
    entry = next(e for e in entries() if "meta-llama/Llama-3.1-8B" in e.ids)
    facts = read_model({k: v for k, v in entry.config.items() if k != key})
    assert any(key in a and "default" in a for a in facts.assumed)


def test_a_quantisation_that_is_no_object_is_refused() -> None:
    entry = next(e for e in entries() if "meta-llama/Llama-3.1-8B" in e.ids)
    with pytest.raises(ModelError, match="quantization_config = 'awq'"):
        read_model({**entry.config, "quantization_config": "awq"})


def test_layers_that_are_listed_need_no_count() -> None:
    entry = next(e for e in entries() if "NemotronH" in e.config["architectures"][0])
    plain = read_model(entry.config)
    words = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
    listed = [words[c] for c in entry.config["hybrid_override_pattern"].replace("|", "")]
    left = {k: v for k, v in entry.config.items() if k not in ("num_hidden_layers", "hybrid_override_pattern")}
    facts = read_model({**left, "layers_block_type": listed})
    assert (facts.num_layers, facts.stored_bytes, facts.missing) == (plain.num_layers, plain.stored_bytes, ())


def test_kinds_of_layers_that_nobody_knows_are_missing() -> None:
    facts = read_model({**LLAMA, "layer_types": ["bogus"] * LLAMA["num_hidden_layers"]})
    assert facts.missing == ("layer_types 'bogus'",)


def test_kinds_for_fewer_layers_than_there_are_are_refused() -> None:
    with pytest.raises(ModelError, match="names 1 layer_types for"):
        read_model({**LLAMA, "layer_types": ["full_attention"]})


def test_an_unknown_rope_scaling_is_assumed_and_said() -> None:
    facts = read_model({**LLAMA, "rope_scaling": {"rope_type": "zigzag", "factor": 2.0}})
    assert any("zigzag" in said for said in facts.assumed)
