"""The catalogue: every entry reads without gaps, and ids are found as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import ModelError
from trimtab.facts import catalogue
from trimtab.facts.catalogue.lookup import Entry, entries, find_model
from trimtab.facts.catalogue.tunes import BODIES
from trimtab.facts.model import read_model


@pytest.mark.parametrize("entry", entries(), ids=lambda e: e.ids[0])
def test_entry_reads_without_gaps(entry: Entry) -> None:
    facts = read_model(entry.config)
    assert facts.decoder_known
    assert facts.num_layers > 0
    if entry.parameters is not None:
        assert facts.parameters == entry.parameters
    assert entry.confidence != "high" or entry.parameters is not None
    assert entry.source
    assert entry.confidence != "high" or "memory" not in entry.source


def test_what_was_not_confirmed_is_said() -> None:
    assert any("from memory" in a for a in find_model("openai/whisper-small").facts().assumed)
    assert not any("confidence" in a for a in find_model("Qwen/Qwen3-8B").facts().assumed)


def test_every_family_is_named() -> None:
    folder = Path(catalogue.__file__).parent
    assert list(catalogue.FAMILIES) == sorted(file.stem for file in folder.glob("*.json"))


def test_size_of_the_catalogue() -> None:
    ids = [i for e in entries() for i in e.ids]
    assert len(entries()) >= 120
    assert len({i.lower() for i in ids}) == len(ids)


@pytest.mark.parametrize(
    ("asked", "found", "variant"),
    [
        ("qwen/qwen3-14b", "Qwen/Qwen3-14B", ""),
        ("QWEN3-14B-AWQ", "Qwen/Qwen3-14B", "awq"),
        ("Qwen2.5-72B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-72B-Instruct", "gptq"),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "meta-llama/Llama-3.3-70B-Instruct", "compressed-tensors"),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "meta-llama/Meta-Llama-3.1-8B-Instruct", "awq"),
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", "meta-llama/Meta-Llama-3.1-70B-Instruct",
         "compressed-tensors"),
        ("unsloth/QwQ-32B-unsloth-bnb-4bit", "Qwen/QwQ-32B", "bitsandbytes"),
        ("Llama-3.2-3B-Instruct Q8_0 GGUF", "meta-llama/Llama-3.2-3B-Instruct", "gguf"),
        ("Qwen/Qwen3.8-27B NVFP4 build (19.75 GiB loaded)", "Qwen/Qwen3.8-27B", "modelopt"),
        ("Qwen2.5-7B-Instruct 4-bit (AWQ/GPTQ)", "Qwen/Qwen2.5-7B-Instruct", "awq"),
        ("tenhkspark/gemma-4-26B-A4B-NVFP4-lmhead", "google/gemma-4-26B-A4B", "modelopt"),
        ("mratsim/MiniMax-M2.1-FP8-INT4-AWQ", "MiniMaxAI/MiniMax-M2.1", "awq"),
        ("Qwen/Qwen3-235B-A22B-FP8", "Qwen/Qwen3-235B-A22B", "fp8"),
    ],
)  # fmt: skip
def test_ids_as_people_write_them(asked: str, found: str, variant: str) -> None:
    result = find_model(asked)
    assert (result.id, result.variant) == (found, variant)
    assert bool(variant) == any("read off the id" in a for a in result.facts().assumed)


def test_models_without_a_chat_template() -> None:
    for entry in entries():
        assert set(entry.without_template) <= set(entry.ids)
    assert find_model("lmsys/vicuna-13b-v1.5").facts().chat_template is False
    assert not find_model("lmsys/vicuna-13b-v1.5").facts().base_model
    assert find_model("meta-llama/Llama-2-13b-hf").facts().base_model
    assert find_model("meta-llama/Llama-2-13b-chat-hf").facts().chat_template


def test_what_is_beside_the_decoder_may_be_unknown() -> None:
    facts = find_model("Qwen/Qwen3.8-Flash-Next-FP8").facts()
    assert facts.decoder_known
    assert facts.missing
    assert (facts.heads, facts.num_layers) == (24, 48)


def test_tunes_of_llama_30b_have_its_heads() -> None:
    assert {find_model(i).facts().heads for i in ("<llama-33b>", "lmsys/vicuna-33b-v1.3")} == {52}


@pytest.mark.parametrize(
    ("name", "body", "variant"),
    [
        ("/models/Qwen15_14B_Chat_sft", "Qwen/Qwen1.5-14B", ""),
        ("me/my-qwen2.5-7b-support-AWQ", "Qwen/Qwen2.5-7B", "awq"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "meta-llama/Llama-3.1-8B", ""),
        ("TheBloke/Wizard-Vicuna-30B-Uncensored-GPTQ", "huggyllama/llama-30b", "gptq"),
        ("cognitivecomputations/dolphin-2.5-mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1", ""),
        ("MaziyarPanahi/WizardLM-2-8x22B-AWQ", "mistralai/Mixtral-8x22B-v0.1", "awq"),
        ("google/medgemma-27b-it", "google/gemma-3-27b-it", ""),
        ("deepseek-ai/DeepSeek-V3.2-Speciale", "deepseek-ai/DeepSeek-V3.2", ""),
        ("cognitivecomputations/dolphin-2.6-mistral-7b", "mistralai/Mistral-7B-v0.1", ""),
    ],
)
def test_a_tune_has_the_body_of_its_base(name: str, body: str, variant: str) -> None:
    found = find_model(name)
    assert (found.id, found.variant, found.tune) == (body, variant, True)
    assert found.facts().chat_template is None
    assert any("read off the name" in a for a in found.facts().assumed)


@pytest.mark.parametrize(
    "name",
    ["x/EAGLE3-LLaMA3.1-8B", "x/qwen2.5-7b-lora",
     "x/Qwen2.5-7B-Reward", "x/llava-v1.6-mistral-7b", "x/tinyllama-3-8bit", "x/Llama-3-8B-moe-4x"],
)  # fmt: skip
def test_what_is_no_plain_tune_is_left_alone(name: str) -> None:
    with pytest.raises(ModelError):
        find_model(name)


def test_every_body_is_catalogued() -> None:
    for _, model in BODIES:
        if "{" not in model:
            assert find_model(model).id == model


def test_a_placeholder_names_a_model() -> None:
    assert find_model("<Qwen3-14B>").id == "Qwen/Qwen3-14B"


def test_a_variant_is_smaller_than_its_model() -> None:
    assert find_model("Qwen/Qwen3-14B-AWQ").facts().stored_bytes < find_model("Qwen/Qwen3-14B").facts().stored_bytes / 2


def test_a_gguf_variant_has_its_mean_bits() -> None:
    facts = find_model("Llama-3.2-3B-Instruct-Q8_0-GGUF").facts()
    assert facts.stored_bytes / facts.parameters == pytest.approx(8.5 / 8, rel=0.001)


def test_a_typo_names_the_nearest() -> None:
    with pytest.raises(ModelError, match="no model 'Qwen/Qwen3-15B'") as caught:
        find_model("Qwen/Qwen3-15B")
    assert "Qwen/Qwen3-14B" in str(caught.value.hint)


@given(st.text(max_size=60))
def test_any_id_is_found_or_refused(model_id: str) -> None:
    try:
        found = find_model(model_id)
    except ModelError:
        return
    assert found.facts().num_layers > 0
