"""From KV cache bytes to what they hold: blocks, tokens, requests at once and the longest request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from trimtab.plan.memory.kv import Layout
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import needs_by_group, needs_of_whole_model, tokens_are_concurrency
from trimtab.plan.parallel import Stage


class Capacity(msgspec.Struct, frozen=True):
    """What the KV cache holds. `needed_bytes` is for one request of max_model_len on the tightest rank."""

    num_blocks: int
    block_size: int
    kv_cache_tokens: int
    max_concurrency: float
    longest_len: int
    needed_bytes: int
    enough: bool


def capacity(
    settings: Settings, layout: Layout, stages: Sequence[Stage], available: Sequence[float], longest: int
) -> Capacity:
    """Blocks and tokens of stages that have `available` bytes each; `longest` bounds the search for longest_len."""
    if not layout.groups:  # encoders cache nothing; vLLM makes one block (get_kv_cache_config_from_groups)
        return Capacity(1, layout.block_size, 0, 0.0, longest, 0, True)
    blocks = num_blocks(settings, layout, stages, available)
    needed = max(needed_bytes(settings, layout, s, settings.max_model_len) for s in stages)
    fits = _fits(settings, layout, stages, available)
    requests = layout.request_blocks(settings.max_model_len)
    concurrency = blocks / requests if requests else 0.0
    return Capacity(
        num_blocks=blocks,
        block_size=layout.block_size,
        kv_cache_tokens=_tokens(settings, layout, blocks, concurrency),
        max_concurrency=concurrency,
        longest_len=_longest(fits, longest),
        needed_bytes=needed,
        enough=fits(settings.max_model_len),
    )


def num_blocks(settings: Settings, layout: Layout, stages: Sequence[Stage], available: Sequence[float]) -> int:
    """Blocks of the rank that holds fewest; all ranks use that number."""
    if settings.num_gpu_blocks_override is not None:
        return settings.num_gpu_blocks_override
    counts = [int(a // b) for s, a in zip(stages, available, strict=True) if (b := layout.block_bytes(s))]
    return max(0, min(counts, default=0))


def needed_bytes(settings: Settings, layout: Layout, stage: Stage, length: int) -> int:
    """KV bytes that one request of `length` tokens needs on a stage, as this release counts them."""
    if settings.engine == "V0":
        return -(-length // layout.block_size) * layout.block_bytes(stage)
    if needs_of_whole_model(settings.version):
        stage = layout.whole
    if needs_by_group(settings.version):
        return layout.request_bytes(stage, length)
    return layout.request_layer_bytes(stage, length)


def _fits(
    settings: Settings, layout: Layout, stages: Sequence[Stage], available: Sequence[float]
) -> Callable[[int], bool]:
    if settings.num_gpu_blocks_override is not None:
        blocks = settings.num_gpu_blocks_override
        return lambda length: layout.request_blocks(length) <= blocks
    pairs = list(zip(stages, available, strict=True))
    if needs_of_whole_model(settings.version):
        pairs = [(stages[0], min(available))]
    return lambda length: all(needed_bytes(settings, layout, s, length) <= a for s, a in pairs)


def _longest(fits: Callable[[int], bool], most: int) -> int:
    """The longest request that fits, 0 when none does (kv_cache_utils.py `estimate_max_model_len`)."""
    if most < 1 or not fits(1):
        return 0
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _tokens(settings: Settings, layout: Layout, blocks: int, concurrency: float) -> int:
    """ "GPU KV cache size" as this release prints it."""
    if not layout.groups:
        return 0
    if settings.engine == "V1" and tokens_are_concurrency(settings.version):
        return int(concurrency * settings.max_model_len)
    smallest = min(g.cache.block_size for g in layout.groups)
    return blocks // len(layout.groups) * smallest * layout.context_ranks
