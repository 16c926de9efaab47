"""DeepSeek V4's packed pools: compressed caches set the page sizes, windows and compressor states share their tensors.

0.26 v1/core/kv_cache_utils.py `_get_kv_cache_groups_uniform_groups`, `_get_kv_cache_config_packed`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from trimtab.plan.memory.caches import LayerCache, Placed
from trimtab.plan.parallel import Stage


class PackedGroup(msgspec.Struct, frozen=True):
    """Caches with one block table. Their pages are those of the first group, the compressed one."""

    members: tuple[Placed, ...]

    @property
    def kinds(self) -> frozenset[LayerCache]:
        return frozenset(m.cache for m in self.members)

    @property
    def page_bytes(self) -> int:
        return sum(m.cache.page_bytes for m in self.members)

    @property
    def tuples(self) -> int:
        """Layer tuples: how many members have the commonest page."""
        return _commonest([m.cache.page_bytes for m in self.members])


def pack(placed: Sequence[Placed]) -> tuple[PackedGroup, ...]:
    """The compressed group, then windows and states by block and window, cut into groups of about as many layers."""
    full = tuple(c for c in placed if c.cache.kind == "full")
    pages = sorted({c.cache.page_bytes for c in full})
    rest: dict[tuple[int, int], list[Placed]] = {}
    for one in placed:
        if one.cache.kind == "sliding":
            page = next((p for p in pages if p >= one.cache.page_bytes), one.cache.page_bytes)
            grown = replace(one, cache=replace(one.cache, page_bytes=page))
            rest.setdefault((one.cache.block_size, one.cache.reach), []).append(grown)
    first = PackedGroup(full)
    counts = [first.tuples, *(PackedGroup(tuple(found)).tuples for found in rest.values())]
    size = _tuples_per_group(counts, counts[0])
    groups = [first]
    for found in rest.values():
        groups += _cut(found, size)
    return tuple(groups)


def packed_block_bytes(groups: Sequence[PackedGroup], stage: Stage) -> int:
    """Bytes of one block: of every page size as many slots as the group with most of them fills."""
    slots: dict[int, int] = {}
    for group in groups:
        counts = Counter(m.cache.page_bytes for m in group.members if stage.start <= m.layer < stage.end)
        for page, number in counts.items():
            slots[page] = max(slots.get(page, 0), number)
    return sum(page * number for page, number in slots.items())


def packed_request_blocks(groups: Sequence[PackedGroup], blocks: Callable[[LayerCache], int]) -> int:
    """Blocks of a request as the concurrency counts them: all groups' bytes in pages of the first."""
    needed = sum(max(blocks(c) for c in g.kinds) * g.page_bytes for g in groups)
    return -(-needed // groups[0].page_bytes)


def packed_tuple_bytes(groups: Sequence[PackedGroup]) -> int:
    """Bytes that one page of a request takes in the length check: every page size once, for the largest group."""
    return sum({m.cache.page_bytes for m in groups[0].members}) * max(g.tuples for g in groups)


def _cut(found: Sequence[Placed], size: int) -> list[PackedGroup]:
    """Split a kind's layers over as few groups as hold `size` tuples each, every n-th layer to the n-th group."""
    by_page: dict[int, list[Placed]] = {}
    for one in found:
        by_page.setdefault(one.cache.page_bytes, []).append(one)
    number = -(-max(len(v) for v in by_page.values()) // size)
    return [PackedGroup(tuple(m for same in by_page.values() for m in same[i::number])) for i in range(number)]


def _commonest(pages: Sequence[int]) -> int:
    return Counter(pages).most_common(1)[0][1] if pages else 0


def _tuples_per_group(counts: Sequence[int], least: int) -> int:
    """The size with least padding, the larger of equals (`_approximate_gcd`)."""
    sizes = range(max(1, least), max(counts) + 1)
    return min(sizes, key=lambda d: (sum(-n % d for n in counts), -d), default=max(1, least))
