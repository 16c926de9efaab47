"""What each release supports, as its registry and quantisation configs say."""

from __future__ import annotations

import pytest

from trimtab.engine.supported import first_release, method_known, minimum_capability, pooling_only, registered


@pytest.mark.parametrize(
    ("architecture", "version", "wanted"),
    [
        ("Qwen3NextForCausalLM", "0.26.0", True),
        ("Qwen3NextForCausalLM", "0.9.2", False),
        ("Qwen3NextForCausalLM", "0.10.0", None),
        ("YiForCausalLM", "0.26.0", False),
        ("NoSuchForCausalLM", "0.26.0", False),
        ("NoSuchForCausalLM", "9.0", None),
    ],
)
def test_registered(architecture: str, version: str, wanted: bool | None) -> None:
    assert registered(architecture, version) is wanted


@pytest.mark.parametrize(
    ("method", "version", "wanted"),
    [("awq", "0.2.0", 80), ("awq", "0.4.0.post1", 75), ("fp8", "0.4.3", 89), ("fp8", "0.5.0", 80), ("fp8", "0.33", 75),
     ("mxfp4", "0.9.2", None), ("bitsandbytes", "0.33.0", None)],
)  # fmt: skip
def test_minimum_capability(method: str, version: str, wanted: int | None) -> None:
    assert minimum_capability(method, version) == wanted


def test_methods_come_and_go() -> None:
    assert method_known("mxfp4", "0.9.2") is False
    assert method_known("mxfp4", "0.10.0") is None
    assert method_known("mxfp4", "0.11.1") is True
    assert method_known("gguf", "0.33.0") is False


def test_pooling_only() -> None:
    assert pooling_only("BertModel")
    assert not pooling_only("LlamaForCausalLM")
    assert first_release("LlamaForCausalLM") == "0.2.0"
