"""The same model as vLLM serves it under --dtype and --quantization, and what its kernels pad when they load it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from trimtab.errors import ModelError
from trimtab.facts.layers import LayerFacts, Tower
from trimtab.facts.model import ModelFacts
from trimtab.facts.overlay import pack_layers
from trimtab.facts.packing import FP8, FP8_ROWS, INT8_ROWS, MXFP8, NF4
from trimtab.facts.quantisation import UNQUANTISED, Group, Quantisation, Scheme
from trimtab.facts.weights import Weight
from trimtab.messages import msg

ONLINE: Mapping[str, Quantisation] = {
    "fp8": Quantisation("fp8", (Group(FP8),)),
    "fp8_per_tensor": Quantisation("fp8_per_tensor", (Group(FP8),)),
    "fp8_per_channel": Quantisation("fp8_per_channel", (Group(FP8_ROWS),)),
    "fp8_per_block": Quantisation("fp8_per_block", (Group(Scheme("fp8 block", 8, block=(128, 128), scale_bytes=4)),)),
    "fbgemm_fp8": Quantisation("fbgemm_fp8", (Group(FP8_ROWS),)),
    "bitsandbytes": Quantisation("bitsandbytes", (Group(NF4),)),
    "experts_int8": Quantisation("experts_int8", (Group(INT8_ROWS, ("experts",)),)),
    "int8_per_channel_weight_only": Quantisation("int8_per_channel_weight_only", (Group(INT8_ROWS),)),
    "mxfp8": Quantisation("mxfp8", (Group(MXFP8),)),
}
"""Methods that pack 16-bit weights while loading (layers/quantization/__init__.py; fp8.py; online/)."""


def as_served(facts: ModelFacts, *, dtype: str | None = None, quantization: str | None = None) -> ModelFacts:
    """Facts under --dtype and --quantization as the launch command gives them (None or "auto": the checkpoint's).

    A checkpoint that is packed already keeps its packing: vLLM refuses or ignores another method. ModelError: a
    method that needs a packed checkpoint, asked for a 16-bit one.
    """
    found = facts
    if quantization not in (None, "auto") and facts.quantisation is None:
        found = _packed(found, str(quantization))
    served = served_dtype(facts, dtype)
    if served == "float32" and found.quantisation is None:
        found = _widened(found)
    return replace(found, dtype=served)


def served_dtype(facts: ModelFacts, dtype: str | None) -> str:
    """Under "auto", float32 checkpoints are served in 16 bit (config/model.py, _get_and_verify_dtype)."""
    names = {"half": "float16", "float16": "float16", "bfloat16": "bfloat16", "float": "float32", "float32": "float32"}
    if dtype in names:
        return names[dtype]
    return "bfloat16" if facts.dtype == "float32" else facts.dtype


def _packed(facts: ModelFacts, method: str) -> ModelFacts:
    quantisation = ONLINE.get(method.lower())
    if quantisation is None:
        raise ModelError(
            msg("--quantization {method} needs a checkpoint that is packed so; this one is 16 bit", method=method),
            hint=msg("Take a packed variant of the model, or one of {names}.", names=", ".join(ONLINE)),
        )
    return replace(facts, quantisation=quantisation, layers=pack_layers(facts.layers, quantisation))


def _widened(facts: ModelFacts) -> ModelFacts:
    made: dict[int, LayerFacts] = {}
    for layer in facts.layers:
        if id(layer) not in made:
            made[id(layer)] = replace(layer, weights=_wide(layer.weights))
    return replace(
        facts,
        embedding=_wide(facts.embedding),
        layers=tuple(made[id(layer)] for layer in facts.layers),
        head=_wide(facts.head),
        towers=tuple(_wide_tower(t) for t in facts.towers),
    )


def _wide(weights: tuple[Weight, ...]) -> tuple[Weight, ...]:
    return tuple(replace(w, element_bytes=4) if w.scheme is UNQUANTISED else w for w in weights)


def _wide_tower(tower: Tower) -> Tower:
    return replace(tower, weights=_wide(tower.weights))


MARLIN_PADDING, TRITON_PADDING = (256, 128), (1, 64)


def mxfp4_padding(
    capability: tuple[int, int] | None, version: tuple[int, int], *, vendor: str = "NVIDIA", flashinfer: bool = True
) -> tuple[int, int]:
    """Multiples of an mxfp4 expert's outer and inner width on this device under this vLLM (major, minor).

    vLLM: quantization/mxfp4.py (0.10 to 0.18) and fused_moe/oracle/mxfp4.py
    (mxfp4_round_up_hidden_size_and_intermediate_size, from 0.19): Marlin below Hopper and on GB10 and RTX Blackwell;
    Triton's kernels on Hopper (from 0.12, which ships them: setup.py); FlashInfer's on B200 where it is installed.
    """
    if vendor == "AMD":
        return (128, 128) if version < (0, 19) else (256, 256)
    if capability is None:
        return (32, 32)
    if capability[0] == 10:
        return (256, 256) if flashinfer else TRITON_PADDING
    if capability[0] == 9 and version >= (0, 12):
        return TRITON_PADDING
    return MARLIN_PADDING
