"""Config values that cannot be are named, not passed over."""

from __future__ import annotations

import pytest

from trimtab.errors import ModelError, UsageError
from trimtab.facts.gpu import parse_gpus
from trimtab.facts.model import read_model

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"torch_dtype": "float7"}, "float7"),
        ({"rope_scaling": {"type": "yarn", "factor": "x"}}, "rope_scaling.factor"),
        ({"rope_scaling": {"rope_type": "linear", "factor": -4.0}}, "rope_scaling.factor"),
        ({"num_key_value_heads": 7}, "do not divide"),
    ],
)
def test_values_that_cannot_be(change: dict[str, object], named: str) -> None:
    with pytest.raises(ModelError, match=named):
        read_model({**LLAMA, **change})


def test_dtypes_of_packed_checkpoints_are_served_in_16_bit() -> None:
    for dtype in ("float8_e4m3fn", "fp8", "half", "auto", "int8", "mxfp4"):
        assert read_model({**LLAMA, "torch_dtype": dtype}).dtype == "bfloat16"


def test_a_null_count_of_experts_is_listed() -> None:
    found = read_model({**LLAMA, "architectures": ["MixtralForCausalLM"], "num_local_experts": None})
    assert any("num_local_experts is null" in said for said in found.assumed)


def test_less_than_no_memory() -> None:
    with pytest.raises(UsageError, match="minus"):
        parse_gpus("-5GiB")
