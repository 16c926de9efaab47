"""--dtype, --quantization and kernel padding against loads that vLLM printed."""

from __future__ import annotations

import pytest

from trimtab.errors import ModelError
from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.model import ModelFacts
from trimtab.facts.serving import as_served, mxfp4_padding, served_dtype

GIB = 1 << 30


def loaded_gib(facts: ModelFacts, pad: tuple[int, int] = (1, 1)) -> float:
    tables = sum(n * width * facts.element_bytes for n, width in facts.rotary_tables)
    return (sum(w.rank_bytes(pad=pad) for w in facts.weights) + tables) / GIB


def test_online_fp8_as_loaded_on_mi300x() -> None:
    facts = as_served(find_model("meta-llama/Llama-3.1-70B-Instruct").facts(), quantization="fp8")
    assert loaded_gib(facts) == pytest.approx(67.698, rel=0.001)


@pytest.mark.parametrize(
    ("name", "capability", "version", "gib"),
    [("openai/gpt-oss-20b", (8, 0), (0, 19), 13.72), ("openai/gpt-oss-120b", (9, 0), (0, 10), 65.97)],
)
def test_mxfp4_padding_as_loaded(name: str, capability: tuple[int, int], version: tuple[int, int], gib: float) -> None:
    assert loaded_gib(find_model(name).facts(), mxfp4_padding(capability, version)) == pytest.approx(gib, rel=0.003)


def test_padding_by_device() -> None:
    assert mxfp4_padding((9, 0), (0, 26)) == (1, 64)
    assert mxfp4_padding((9, 0), (0, 11)) == (256, 128)  # its wheel has no triton_kernels
    assert mxfp4_padding((10, 0), (0, 26)) == (256, 256)
    assert mxfp4_padding((12, 1), (0, 30)) == (256, 128)
    assert mxfp4_padding(None, (0, 26), vendor="AMD") == (256, 256)


def test_float32_checkpoints_are_served_in_16_bit() -> None:
    facts = find_model("openai-community/gpt2").facts()
    assert served_dtype(facts, "auto") == "bfloat16"
    assert facts.stored_bytes == 4 * facts.parameters
    assert loaded_gib(as_served(facts)) * 2 == pytest.approx(loaded_gib(as_served(facts, dtype="float32")), rel=0.001)


def test_a_packed_checkpoint_keeps_its_packing() -> None:
    facts = find_model("Qwen/Qwen3-14B-AWQ").facts()
    assert as_served(facts, quantization="awq_marlin").layers == facts.layers


def test_a_method_that_needs_a_packed_checkpoint() -> None:
    with pytest.raises(ModelError, match="--quantization gptq needs a checkpoint that is packed so"):
        as_served(find_model("Qwen/Qwen3-14B").facts(), quantization="gptq")
