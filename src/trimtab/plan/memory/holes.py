"""Holes in PyTorch's segments where a 16-bit model is packed layer by layer after all of it has been loaded."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from functools import lru_cache

from trimtab.facts.layers import LayerFacts
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.allocator import MEDIUM, SMALL
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import counts_reserved
from trimtab.plan.memory.weights import rank_tensors
from trimtab.plan.parallel import Stage


def hole_bytes(settings: Settings, stored: ModelFacts, served: ModelFacts, stage: Stage) -> int:
    """Bytes that stay reserved between the tensors of `served`, where --quantization packs what `stored` is.

    Each packed tensor takes the smallest free block that holds it; a segment with one tensor left is not given back
    (0.6.6 model_loader/loader.py `process_weights_after_loading`, quantization/fp8.py).
    """
    version = settings.version
    if stored is served or not counts_reserved(version, settings.engine):
        return 0
    pairs = zip(stored.layers[stage.start : stage.end], served.layers[stage.start : stage.end], strict=True)
    known: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
    tensors: list[tuple[int, int]] = []
    for wide, packed in pairs:  # equal layers are the same object
        key = (id(wide), id(packed))
        if key not in known:
            known[key] = tuple(_sizes(settings, wide, packed))
        tensors += known[key]
    return _left_between(tuple(tensors))


@lru_cache(maxsize=64)
def _left_between(tensors: tuple[tuple[int, int], ...]) -> int:
    """Ranks that hold the same, and the planner's variants of one launch, ask for the same game."""
    return _Pool().packed(tensors)


def _sizes(settings: Settings, wide: LayerFacts, packed: LayerFacts) -> Iterator[tuple[int, int]]:
    """Bytes before and after of each large tensor of a layer."""
    for old, new in zip(wide.weights, packed.weights, strict=True):
        before, after = rank_tensors(old, settings), rank_tensors(new, settings)
        if before and after and before[0] != after[0] and before[0] >= MEDIUM:
            yield before[0], after[0]


class _Block:
    __slots__ = ("left", "right", "size", "used")

    def __init__(self, size: int, left: _Block | None = None, right: _Block | None = None) -> None:
        self.size, self.used, self.left, self.right = size, True, left, right


class _Pool:
    """Segments of exactly the size first asked for, split and joined as c10/cuda/CUDACachingAllocator.cpp does."""

    def __init__(self) -> None:
        self._free: list[tuple[int, int]] = []
        self._blocks: dict[int, _Block] = {}

    def packed(self, tensors: Sequence[tuple[int, int]]) -> int:
        """Free bytes of segments in use after every tensor has been replaced by its packed form, in order."""
        loaded = [self._take(before) for before, _ in tensors]
        for block, (_, after) in zip(loaded, tensors, strict=True):
            self._take(after)
            self._give(block)
        return sum(size for size, key in self._free if not _whole(self._blocks[key]))

    def _take(self, size: int) -> _Block:
        at = bisect_left(self._free, (size, 0))
        if at == len(self._free):
            made = _Block(size)
            self._blocks[id(made)] = made
            return made
        block = self._blocks[self._free.pop(at)[1]]
        block.used = True
        if block.size - size > SMALL:
            rest = _Block(block.size - size, block, block.right)
            if block.right:
                block.right.left = rest
            block.right, block.size = rest, size
            self._blocks[id(rest)] = rest
            self._list(rest)
        return block

    def _give(self, block: _Block) -> None:
        for near in (block.left, block.right):
            if near and not near.used:
                self._free.remove((near.size, id(near)))
                block.size += near.size
                if near is block.left:
                    block.left = near.left
                    if near.left:
                        near.left.right = block
                else:
                    block.right = near.right
                    if near.right:
                        near.right.left = block
        self._list(block)

    def _list(self, block: _Block) -> None:
        block.used = False
        insort(self._free, (block.size, id(block)))


def _whole(block: _Block) -> bool:
    return block.left is None and block.right is None
