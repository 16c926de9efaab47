"""One weight as vLLM holds it after fusing, and how tensor and expert parallelism split it over ranks."""

from __future__ import annotations

from typing import Literal

import msgspec

from trimtab.facts.quantisation import UNQUANTISED, Scheme

Part = Literal[
    "embedding", "attention", "mlp", "experts", "shared_experts", "router", "norm", "lm_head", "mamba", "vision",
    "audio", "projector", "mtp", "other",
]  # fmt: skip
VOCAB_PADDING = 64
"""Rows to which vLLM pads the vocabulary (DEFAULT_VOCAB_PADDING_SIZE in layers/vocab_parallel_embedding.py)."""


class Span(msgspec.Struct, frozen=True):
    """Output rows that split by `units` (heads, say): a rank holds at least one unit, so KV heads replicate."""

    rows: int
    units: int = 0

    def on_rank(self, ranks: int) -> int:
        """Rows on the fullest rank."""
        if not self.units:
            return -(-self.rows // ranks)
        return self.rows // self.units * max(1, -(-self.units // ranks))


class Weight(msgspec.Struct, frozen=True):
    """A matrix (or `copies` of it, one per expert) of sum(spans.rows) x `into`, with an optional bias per output row.

    `split`: "rows" (column-parallel: outputs split), "columns" (row-parallel: inputs split), "none" (every rank holds
    all), "vocab" (rows padded to 64, then split). Experts split by inner size under TP or by count under EP.
    `element_bytes` is for what is not packed (bias, norms, 16-bit matrices). `loaded_only`: vLLM makes it when it
    loads; no checkpoint holds it. Not `packable`: vLLM gives this layer no quantisation.
    """

    name: str
    part: Part
    spans: tuple[Span, ...]
    into: int = 1
    split: Literal["rows", "columns", "none", "vocab"] = "none"
    copies: int = 1
    bias: bool = False
    scheme: Scheme = UNQUANTISED
    element_bytes: float = 2
    loaded_only: bool = False
    packable: bool = True

    @property
    def rows(self) -> int:
        return sum(s.rows for s in self.spans)

    @property
    def parameters(self) -> int:
        """Elements as the checkpoint counts them: before padding and packing."""
        return 0 if self.loaded_only else self.copies * self.rows * (self.into + self.bias)

    @property
    def stored_bytes(self) -> int:
        """Bytes in the checkpoint, with scales and zeros of its packing."""
        if self.loaded_only:
            return 0
        bias = int(self.copies * self.rows * self.element_bytes) if self.bias else 0
        if self.scheme is UNQUANTISED:
            return int(self.copies * self.rows * self.into * self.element_bytes) + bias
        return self.scheme.stored_bytes(self.rows, self.into, self.copies, len(self.spans)) + bias

    def rank_shape(self, tp: int = 1, ep: int = 1) -> tuple[int, int, int]:
        """Copies, rows and columns on the fullest of `tp` ranks; `ep` > 1 splits experts by count instead."""
        copies, rows, into = self.copies, self.rows, self.into
        if copies > 1 and ep > 1:
            return -(-copies // ep), rows, into
        if self.split == "rows":
            rows = sum(s.on_rank(tp) for s in self.spans)
        elif self.split == "columns":
            into = -(-into // tp)
        elif self.split == "vocab":
            rows = -(-rows // VOCAB_PADDING) * VOCAB_PADDING
            rows = -(-rows // tp)
        return copies, rows, into

    def rank_tensors(self, tp: int = 1, ep: int = 1, pad: tuple[int, int] = (1, 1)) -> tuple[int, ...]:
        """Bytes of each tensor that vLLM holds on the fullest rank.

        `pad` = multiples to which mxfp4 kernels round an expert's outer and inner width (`loading.mxfp4_padding`).
        """
        copies, rows, into = self.rank_shape(tp, ep)
        if self.scheme.padded:
            rows, into = self._padded(rows, into, pad)
        if self.scheme is UNQUANTISED:
            tensors: tuple[int, ...] = (int(copies * rows * into * self.element_bytes),)
        else:
            tensors = self.scheme.loaded_tensors(rows, into, copies, len(self.spans))
        return (*tensors, int(copies * rows * self.element_bytes)) if self.bias else tensors

    def rank_bytes(self, tp: int = 1, ep: int = 1, pad: tuple[int, int] = (1, 1)) -> int:
        return sum(self.rank_tensors(tp, ep, pad))

    def _padded(self, rows: int, into: int, pad: tuple[int, int]) -> tuple[int, int]:
        outer, inner = pad
        if self.split == "columns":
            return -(-rows // outer) * outer, -(-into // inner) * inner
        half = len(self.spans)
        return half * (-(-(rows // half) // inner) * inner), -(-into // outer) * outer
