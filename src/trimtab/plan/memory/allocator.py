"""How much PyTorch's caching allocator holds for tensors of given sizes: what vLLM measures as weight memory."""

from __future__ import annotations

from collections.abc import Iterable

MIB = 1 << 20
GIB = 1 << 30
SMALL = MIB
"""Up to here a request is served from 2 MiB segments; a rest of this size or less is not split off."""
MEDIUM = 10 * MIB
LARGE_SEGMENT = 20 * MIB
UNSPLIT = 20 * MIB
"""vLLM sets max_split_size_mb to 20 while it loads (from 0.21)."""


def held_bytes(size: int, *, splits_large: bool) -> int:
    """Bytes that one tensor takes, after c10/cuda/CUDACachingAllocator.cpp (`round_size`, `should_split`).

    Sizes round to 512 bytes; segments of 10 MiB or more round to 2 MiB, and their rest is lost to the tensor when it
    is 1 MiB or less, or when blocks of 20 MiB and more are not split.
    """
    size = -(-size // 512) * 512
    if size <= SMALL:
        return size
    segment = LARGE_SEGMENT if size < MEDIUM else -(-size // (2 * MIB)) * 2 * MIB
    rest = segment - size
    if rest <= SMALL or (not splits_large and size >= UNSPLIT):
        return segment
    return size


def reuse_loss_bytes(sizes: Iterable[int], freed: Iterable[int]) -> int:
    """Bytes lost when large tensors take whole freed blocks that may not be split.

    `freed` are blocks released before `sizes` are asked for, in order; a block serves a request when it is at most
    20 MiB larger (CUDACachingAllocator.cpp `get_free_block`).
    """
    blocks = sorted(b for b in freed if b >= UNSPLIT)
    lost = 0
    for size in sizes:
        if not blocks:
            break
        if size < UNSPLIT:
            continue
        fit = next((b for b in blocks if size <= b < size + LARGE_SEGMENT), None)
        if fit is not None:
            blocks.remove(fit)
            lost += fit - held_bytes(size, splits_large=False)
    return max(0, lost)
