"""Quantisation configs in each method's own words: which modules they pack and how many bytes that makes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.model import ModelFacts, read_model
from trimtab.facts.weights import Weight

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"
GIB = 1 << 30


def packed(quantisation: dict[str, Any], model: str = "llama-3.1-8b") -> ModelFacts:
    config = json.loads((FIXTURES / f"{model}.json").read_text())
    return read_model({**config, "quantization_config": quantisation})


def weight(facts: ModelFacts, name: str, layer: int = 0) -> Weight:
    return next(w for w in facts.layers[layer].weights if w.name == name)


def compressed(weights: dict[str, Any], **more: Any) -> dict[str, Any]:
    group = {"weights": weights, "targets": ["Linear"]}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, "ignore": ["lm_head"], **more}


OUT, INTO = 4096, 14336
"""down_proj of Llama-3.1-8B."""


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, (OUT * INTO, 4)),
        ({"quant_method": "fp8", "activation_scheme": "static"}, (OUT * INTO, 4, 4)),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, (OUT * INTO, 32 * 112 * 4)),
        ({"quant_method": "fbgemm_fp8"}, (OUT * INTO, OUT * 4)),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
         (OUT * INTO // 2, OUT * 112 * 2, OUT * 112 // 2)),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, (OUT * INTO // 2, OUT * 112 * 2)),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": True}, (OUT * INTO, OUT * 2)),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": True},
         (OUT * INTO // 2, OUT * 112 * 2, INTO * 4)),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True}, (OUT * INTO // 2, OUT * 112 * 2)),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, (OUT * INTO // 2, OUT * INTO // 64 * 4)),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, (OUT * INTO, OUT * 4)),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, (OUT * INTO // 2, OUT * INTO // 16, 8)),
        ({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}}, (OUT * INTO, 4, 4)),
        (compressed({"num_bits": 8, "type": "float", "strategy": "channel"}), (OUT * INTO, OUT * 4)),
        (compressed({"num_bits": 8, "type": "float", "strategy": "tensor"}), (OUT * INTO, 4)),
        (compressed({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}),
         (OUT * INTO, 32 * 112 * 4)),
        (compressed({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True}),
         (OUT * INTO // 2, OUT * 112 * 2)),
        (compressed({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}),
         (OUT * INTO // 2, OUT * INTO // 16, 8)),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}, (OUT * INTO, 4)),
    ],
)  # fmt: skip
def test_tensors_of_one_matrix(config: dict[str, Any], expected: tuple[int, ...]) -> None:
    facts = packed(config)
    assert facts.missing == ()
    assert weight(facts, "mlp.down_proj").rank_tensors() == expected
    assert all(w.scheme.name == "none" for w in (*facts.embedding, *facts.head))


@pytest.mark.parametrize(
    "pattern",
    ["model.layers.0.mlp.down_proj", "down_proj", "re:.*layers\\.0\\.mlp\\..*", "model.layers.0.*",
     "language_model.model.layers.0.mlp.down_proj", "*.layers.0.mlp*"],
)  # fmt: skip
def test_excluded_layers_stay_in_16_bit(pattern: str) -> None:
    facts = packed({"quant_method": "awq", "bits": 4, "modules_to_not_convert": [pattern]})
    assert weight(facts, "mlp.down_proj").scheme.name == "none"
    assert (weight(facts, "mlp.down_proj", 1).scheme.name == "none") == (pattern == "down_proj")


def test_a_name_excludes_no_other_that_it_begins() -> None:
    facts = packed({"quant_method": "fp8", "ignored_layers": ["model.layers.1"]})
    assert weight(facts, "mlp.down_proj", 1).scheme.name == "none"
    assert weight(facts, "mlp.down_proj", 10).scheme.name == "fp8"


def test_mixed_checkpoints_pack_by_target() -> None:
    groups = {
        "group_0": {
            "targets": ["re:.*self_attn.*"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
        },
        "group_1": {
            "targets": ["Linear"],
            "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128},
        },
    }
    facts = packed({"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ["lm_head"]})
    assert weight(facts, "self_attn.qkv_proj").scheme.bits == 8
    assert weight(facts, "mlp.down_proj").scheme.bits == 4


def test_kv_cache_schemes() -> None:
    kv = {"num_bits": 8, "type": "float"}
    weights = {"num_bits": 8, "type": "float", "strategy": "tensor"}
    declared = packed(compressed(weights, kv_cache_scheme=kv)).quantisation
    plain = packed(compressed(weights)).quantisation
    assert declared is not None
    assert declared.kv_scheme == "fp8"
    assert plain is not None
    assert plain.kv_scheme == ""


def test_experts_alone_are_mxfp4_in_gpt_oss() -> None:
    config = json.loads((FIXTURES / "gpt-oss-20b.json").read_text())
    facts = read_model(config)
    assert {w.scheme.name for w in facts.layers[0].weights if w.part == "experts"} == {"mxfp4"}
    assert {w.scheme.name for w in facts.layers[0].weights if w.part != "experts"} == {"none"}
    assert round(facts.stored_bytes / GIB, 2) == 12.82


def test_packed_mla_keeps_a_16_bit_copy_for_absorption() -> None:
    facts = find_model("deepseek-ai/DeepSeek-V3").facts()
    copies = [w for w in facts.layers[0].weights if w.loaded_only]
    assert [w.rank_bytes(8) for w in copies] == [128 * 256 // 8 * 512 * 2]
    assert sum(w.parameters for w in copies) == 0


@pytest.mark.parametrize(
    ("model", "tp", "gib"),
    [
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", 4, 16.962),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507-FP8", 1, 29.10),
        ("kaitchup/Meta-Llama-3.1-8B-Instruct-autoround-gptq-4bit-sym", 1, 5.349),
        ("MiniMaxAI/MiniMax-M2.5", 4, 53.75),
        ("deepseek-ai/DeepSeek-R1-0528", 8, 79.739),
    ],
)
def test_loads_that_vllm_printed(model: str, tp: int, gib: float) -> None:
    facts = find_model(model).facts()
    tables = sum(n * width * 2 for n, width in facts.rotary_tables)
    loaded = (sum(w.rank_bytes(tp) for w in facts.weights) + tables) / GIB
    assert loaded == pytest.approx(gib, rel=0.003)


def test_a_mixed_checkpoint_may_name_tens_of_thousands_of_modules() -> None:
    names = [f"model.layers.{n}.block_sparse_moe.experts.{e}.w1" for n in range(60) for e in range(512)]
    layers = {name: {"quant_algo": "NVFP4"} for name in names} | {
        f"model.layers.{n}.mlp.down_proj": {"quant_algo": "FP8"} for n in range(31)
    }
    started = time.process_time()
    facts = packed({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers})
    assert time.process_time() - started < 3
    assert weight(facts, "mlp.down_proj", 30).scheme.name == "fp8"
    assert weight(facts, "mlp.down_proj", 31).scheme.bits == 16
