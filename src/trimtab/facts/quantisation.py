"""How a checkpoint's weights are packed: the bytes of one matrix as stored and as vLLM loads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Packing = Literal["none", "fp8", "fp8_block", "int8", "int4_group", "nvfp4", "mxfp4", "mxfp8", "nf4", "gguf"]


@dataclass(frozen=True, slots=True)
class Scheme:
    """One packing of a matrix of `out` x `in`.

    `weight_bits` per element; `group` elements of the input axis share a scale (0: none; -1: a whole row); `block` is
    (rows, columns) per scale of block-wise fp8; `scale_bytes` each; `zero_bits` per group and output (0: symmetric).
    """

    packing: Packing = "none"
    weight_bits: float = 16
    group: int = 0
    block: tuple[int, int] | None = None
    scale_bytes: int = 2
    zero_bits: int = 0
    index_bytes: int = 0

    def tensor_bytes(self, out: int, into: int, copies: int = 1) -> tuple[int, ...]:
        """Bytes of each tensor that holds `copies` matrices of `out` x `into`: weight, scales, zeros, index."""
        weight = int(copies * out * into * self.weight_bits) // 8
        if self.packing == "none":
            return (weight,)
        scales = copies * self._scales(out, into) * self.scale_bytes
        zeros = copies * out * self._groups(into) * self.zero_bits // 8
        index = copies * into * self.index_bytes
        return tuple(b for b in (weight, scales, zeros, index) if b)

    def _groups(self, into: int) -> int:
        return 1 if self.group <= 0 else -(-into // self.group)

    def _scales(self, out: int, into: int) -> int:
        if self.block is not None:
            return -(-out // self.block[0]) * -(-into // self.block[1])
        if self.group == 0:
            return 1
        return out * self._groups(into)


UNQUANTISED = Scheme()


@dataclass(frozen=True, slots=True)
class Quantisation:
    """A checkpoint's quantisation as its config declares it.

    `scheme` packs every linear layer but those that `excluded` (glob-like patterns or suffixes of module names) names;
    `kv_scheme` is the KV cache's ("fp8" or empty). `method` is vLLM's name for it.
    """

    method: str
    scheme: Scheme
    excluded: tuple[str, ...] = ()
    kv_scheme: str = ""
    lm_head: bool = False
