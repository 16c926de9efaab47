"""Whatever a config, a header or a draft says, it is read or refused by one clear error, and no size is negative.

`scripts/fuzz` runs many more cases: it sets the number in TRIMTAB_FUZZ_CASES.
"""

from __future__ import annotations

import copy
import json
import os
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.facts.test_encoders_beside import DEEPSEEK_OCR, MINICPM_V_26, QWEN2_AUDIO
from tests.facts.test_gguf import gguf, pair, small_llama, tensor
from trimtab.errors import ModelError
from trimtab.facts.architectures.registry import known_architectures
from trimtab.facts.catalogue.lookup import entries, find_model
from trimtab.facts.drafting import draft_method, read_draft
from trimtab.facts.gguf import NeedMore, read_gguf
from trimtab.facts.gguf_model import read_gguf_model
from trimtab.facts.model import ModelFacts, read_model
from trimtab.facts.tensors import read_safetensors

CASES = int(os.environ.get("TRIMTAB_FUZZ_CASES", "100"))
run = settings(
    max_examples=CASES, deadline=None, database=None, derandomize=CASES < 1000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)  # fmt: skip

REAL = [*(e.config for e in entries()), MINICPM_V_26, QWEN2_AUDIO, DEEPSEEK_OCR]
KEYS = sorted({key for config in REAL for key in config} | {
    "quantization_config", "text_config", "vision_config", "audio_config", "thinker_config", "projector_config",
    "head_dim", "num_nextn_predict_layers", "layer_types", "transformer_layer_config", "rope_parameters", "dtype",
})  # fmt: skip
METHODS = ["awq", "gptq", "fp8", "compressed-tensors", "bitsandbytes", "modelopt", "mxfp4", "gguf", "auto-round", "?"]
PLAIN = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2, 3, 7, 128, 4096, "4096", "128k", 1 << 31, 1 << 62, 1 << 80, 0.5, 1e400, "", "auto"])
    | st.integers(-(2**65), 2**65)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(known_architectures()).map(lambda name: [name])
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=6,
)  # fmt: skip
QUANTISATIONS = st.fixed_dictionaries(
    {"quant_method": st.sampled_from(METHODS)},
    optional={
        key: VALUES | st.sampled_from([4, 8, 128, -1, {"weights": {"num_bits": 4}}, [128, 128], ["lm_head"]])
        for key in (
            "bits", "group_size", "weight_block_size", "config_groups", "ignore", "modules_to_not_convert", "sym",
            "desc_act", "zero_point", "load_in_4bit", "load_in_8bit", "quant_algo", "dynamic", "exclude_modules",
            "format", "kv_cache_scheme", "activation_scheme",
        )
    },
)  # fmt: skip


def changed(draw: st.DrawFn, config: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """The config with some keys taken away, replaced or added, at any depth."""
    found = copy.copy(config)
    for key in draw(st.lists(st.sampled_from(sorted(found)), max_size=4)) if found else []:
        if isinstance(found.get(key), dict) and depth < 3 and draw(st.booleans()):
            found[key] = changed(draw, found[key], depth + 1)
        elif draw(st.booleans()):
            found.pop(key, None)
        else:
            found[key] = draw(VALUES)
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=2)):
        found[key] = draw(VALUES)
    return found


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    config = changed(draw, draw(st.sampled_from(REAL)))
    if draw(st.booleans()):
        config["architectures"] = [draw(st.sampled_from(known_architectures()) | st.text(max_size=12))]
    if draw(st.integers(0, 3)) == 0:
        config["quantization_config"] = draw(QUANTISATIONS)
    return config


def sound(facts: ModelFacts) -> None:
    assert facts.parameters >= 0
    assert facts.stored_bytes >= 0
    assert facts.kv_elements_per_token() >= 0
    for bound in facts.bounds:
        assert bound.low is None or bound.high is None or bound.low <= bound.high
    for weight in facts.weights[:40]:
        assert weight.rank_bytes(2) >= 0


@run
@given(configs())
def test_any_config(config: dict[str, Any]) -> None:
    told = ""
    try:
        facts = read_model(config)
    except ModelError as error:
        told = str(error)
    if told:
        assert len(told) < 400
        return
    sound(facts)
    known = facts.architecture in known_architectures()
    assert known or facts.missing


@run
@given(configs(), st.sampled_from(["eagle", "eagle3", "medusa", "draft_model", "dflash"]), st.integers(0, 99))
def test_any_draft(config: dict[str, Any], method: str, tokens: int) -> None:
    target = find_model("Qwen/Qwen3-8B").facts()
    assert draft_method(None, "org/d", config)
    try:
        draft = read_draft(config, method, tokens, target)
    except ModelError:
        return
    assert draft is None or all(w.parameters >= 0 for w in draft.weights)


def safetensors(header: bytes, body: bytes, length: int | None = None) -> bytes:
    return (len(header) if length is None else length).to_bytes(8, "little") + header + body


TENSORS = st.dictionaries(
    st.text(max_size=6) | st.just("__metadata__"),
    st.fixed_dictionaries({
        "dtype": st.sampled_from(["BF16", "F32", "F8_E4M3", "I4", "U8", "X9", 7, None]),
        "shape": st.lists(st.integers(-1, 9) | st.sampled_from([1 << 40, 1 << 70, "4", None]), max_size=3),
        "data_offsets": st.lists(st.integers(-1, 99) | st.sampled_from([1 << 64, "0", None]), max_size=3),
    }) | VALUES,
    max_size=4,
)  # fmt: skip


@run
@given(TENSORS, st.binary(max_size=64), st.none() | st.integers(0, 2**64 - 1), st.data())
def test_any_safetensors(header: dict[str, Any], body: bytes, length: int | None, data: st.DataObject) -> None:
    try:
        text = json.dumps(header).encode()
    except ValueError:
        return
    whole = safetensors(text, body, length)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    size = data.draw(st.none() | st.integers(0, 2**63))
    told = ""
    try:
        assert read_safetensors(cut, file_bytes=size).size_bytes >= 0
    except ModelError as error:
        told = str(error)
    assert len(told) < 600


@run
@given(st.data())
def test_any_gguf(data: st.DataObject) -> None:
    kinds = st.integers(0, 60) | st.sampled_from([2**31, 2**32 - 1])
    source = data.draw(st.sampled_from(["llama", "made"]))
    if source == "llama":
        raw = bytearray(small_llama(data.draw(kinds), data.draw(kinds)))
    else:
        names = st.sampled_from(["blk.0.attn_q.weight", "token_embd.weight", "output.weight", "x", ""])
        shapes = st.lists(st.integers(0, 2**20) | st.sampled_from([2**40, 2**63]), max_size=5)
        tensors = [tensor(data.draw(names), tuple(data.draw(shapes)), data.draw(kinds)) for _ in range(3)]
        raw = bytearray(gguf([pair("general.architecture", data.draw(st.text(max_size=6)))], tensors))
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))]) if data.draw(st.booleans()) else bytes(raw)
    try:
        facts = read_gguf_model(read_gguf(cut, file_bytes=data.draw(st.none() | st.integers(0, 2**40))))
    except (ModelError, NeedMore):
        return
    sound(facts)
