"""What each release supports, as its registry and quantisation configs say."""

from __future__ import annotations

import pytest

from trimtab.engine.supported import (
    asked_transformers,
    example_architecture,
    first_release,
    method_known,
    minimum_capability,
    needed_transformers,
    patches,
    pooling_only,
    registered,
    unregistered,
)


@pytest.mark.parametrize(
    ("architecture", "version", "wanted"),
    [
        ("Qwen3NextForCausalLM", "0.26.0", True),
        ("Qwen3NextForCausalLM", "0.9.2", False),
        ("Qwen3NextForCausalLM", "0.10.0", False),
        ("Qwen3NextForCausalLM", "0.10", True),
        ("Qwen3NextForCausalLM", "0.10.3", True),
        ("Qwen3NextForCausalLM", "0.10.1.2", None),
        ("YiForCausalLM", "0.26.0", False),
        ("NoSuchForCausalLM", "0.26.0", False),
        ("NoSuchForCausalLM", "9.0", None),
    ],
)
def test_registered(architecture: str, version: str, wanted: bool | None) -> None:
    assert registered(architecture, version) is wanted


@pytest.mark.parametrize(
    ("method", "version", "wanted"),
    [("awq", "0.2.0", 80), ("awq", "0.4.0.post1", 75), ("fp8", "0.4.3", 89), ("fp8", "0.5.0", 89), ("fp8", "0.5.1", 80),
     ("fp8", "0.33", 75),
     ("mxfp4", "0.9.2", None), ("bitsandbytes", "0.33.0", None)],
)  # fmt: skip
def test_minimum_capability(method: str, version: str, wanted: int | None) -> None:
    assert minimum_capability(method, version) == wanted


def test_methods_come_and_go() -> None:
    assert method_known("mxfp4", "0.9.2") is False
    assert method_known("mxfp4", "0.10.0") is False
    assert method_known("mxfp4", "0.10") is True
    assert method_known("mxfp4", "0.10.0.1") is None
    assert method_known("mxfp4", "0.11.1") is True
    assert method_known("gguf", "0.33.0") is False


def test_pooling_only() -> None:
    assert pooling_only("BertModel")
    assert not pooling_only("LlamaForCausalLM")
    assert first_release("LlamaForCausalLM") == "0.1.4"


def test_a_minor_version_means_any_of_its_patches() -> None:
    assert patches("0.10") == ("0.10.0", "0.10.1", "0.10.2")
    assert patches("0.10.1") == ("0.10.1",)
    assert patches("0.99") == ("0.99",)


def test_transformers() -> None:
    assert asked_transformers("0.10.1") == ("4.55.0", None)
    assert asked_transformers("0.12") == ("4.56.0", "5")
    assert needed_transformers("Glm4vMoeForConditionalGeneration", "0.10.1") == "4.56"
    assert needed_transformers("Glm4vMoeForConditionalGeneration", "0.12.0") is None
    assert needed_transformers("LlamaForCausalLM", "0.33.0") is None


def test_the_tests_of_vllm_name_models() -> None:
    assert example_architecture(["qwen2.5-omni-7b"]) == "Qwen2_5OmniModel"
    assert example_architecture(["no/such", "zai-org/glm-4.5v"]) == "Glm4vMoeForConditionalGeneration"
    assert example_architecture(["no/such"]) is None


@pytest.mark.parametrize(
    ("architecture", "version", "wanted"),
    [
        ("Gemma3ForConditionalGeneration", "0.6.6", True),
        ("Qwen3NextForCausalLM", "0.10", False),
        ("YiForCausalLM", "0.26.0", False),
        ("NoSuchForCausalLM", "0.26.0", False),
    ],
)
def test_unregistered(architecture: str, version: str, wanted: bool) -> None:
    assert unregistered(architecture, version) is wanted
