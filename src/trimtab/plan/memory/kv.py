"""KV cache layout: how vLLM groups the layers' caches into pools, and the blocks that a request needs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from trimtab.facts.layers import LayerFacts
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.caches import LayerCache, Placed, is_packed, place_caches, state_bytes
from trimtab.plan.memory.packed import PackedGroup, pack, packed_block_bytes, packed_request_blocks, packed_tuple_bytes
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import group_size_slack, in_flight_batches
from trimtab.plan.parallel import Stage


class Group(msgspec.Struct, frozen=True):
    """Caches that share a block table: what each is, and the layers they belong to."""

    cache: LayerCache
    layers: tuple[int, ...]


class Layout(msgspec.Struct, frozen=True):
    """All groups of a model. `mixed_pages`: one group holds caches of unlike page sizes; `packed`: DeepSeek V4's."""

    groups: tuple[Group, ...]
    caches: tuple[Placed, ...]
    layers: int
    block_size: int
    in_flight_tokens: int
    context_ranks: int
    mamba_cache_mode: str
    speculative_blocks: int
    mixed_pages: bool = False
    packed: tuple[PackedGroup, ...] = ()
    padding_layers: int = 0
    state_padding: float = 0.0

    def block_bytes(self, stage: Stage) -> int:
        """Bytes of one block over all layers of a stage (kv_cache_utils.py `_pool_bytes_per_block`)."""
        if self.packed:
            return packed_block_bytes(self.packed, stage)
        if not self.groups:
            return 0
        if self.mixed_pages:
            return sum(c.cache.page_bytes for c in self._of(stage))
        size = max(bisect_left(g.layers, stage.end) - bisect_left(g.layers, stage.start) for g in self.groups)
        return size * self.groups[0].cache.page_bytes

    @property
    def whole(self) -> Stage:
        """The model as one stage."""
        return Stage(0, self.layers, True, True)

    def request_blocks(self, length: int) -> int:
        """Blocks that one request of `length` tokens holds at most, over all groups."""
        if self.packed:
            return packed_request_blocks(self.packed, lambda c: self.blocks(c, length))
        if self.mixed_pages:
            return max((self.blocks(g.cache, length) for g in self.groups), default=0)
        return sum(self.blocks(g.cache, length) for g in self.groups)

    def request_bytes(self, stage: Stage, length: int) -> int:
        """Bytes that one request needs on a stage, padding included (`_max_memory_usage_bytes_from_groups`)."""
        if self.packed:
            pages = sum(max(self.blocks(c, length) for c in g.kinds) for g in self.packed)
            return pages * packed_tuple_bytes(self.packed)
        return self.request_blocks(length) * self.block_bytes(stage)

    def request_layer_bytes(self, stage: Stage, length: int) -> int:
        """Bytes that one request needs on a stage without padding: the sum over its layers."""
        return sum(self.blocks(c.cache, length) * c.cache.page_bytes for c in self._of(stage))

    def blocks(self, cache: LayerCache, length: int) -> int:
        """Blocks of one cache that a request of `length` tokens holds at most (`max_memory_usage_bytes`)."""
        if cache.kind == "sliding":
            return -(-min(cache.reach - 1 + self.in_flight_tokens, length) // cache.block_size) + 1
        if cache.kind == "chunked":
            return -(-min(cache.reach + self.in_flight_tokens, length) // cache.block_size)
        if cache.kind == "state":
            if self.mamba_cache_mode == "all":
                return -(-length // cache.block_size) + self.speculative_blocks
            return (2 if self.mamba_cache_mode == "align" else 1) + self.speculative_blocks
        own = -(-length // self.context_ranks)
        return -(-own // cache.block_size)

    def _of(self, stage: Stage) -> list[Placed]:
        return [c for c in self.caches if stage.start <= c.layer < stage.end]


def layout(settings: Settings, model: ModelFacts, layers: Sequence[LayerFacts] | None = None) -> Layout:
    """The groups of `layers` (the model's own by default, drafts may be appended) under `settings`."""
    layers = model.layers if layers is None else layers
    placed, block, padded = place_caches(settings, layers)
    packed = pack(placed) if is_packed(layers) else ()
    mixed = not packed and _mixed_pages(placed)
    if not mixed and not packed:
        placed = _unify(placed)
    groups, padding = _group(placed, settings, mixed or bool(packed))
    batches = in_flight_batches(
        settings.version, settings.runner, settings.pipeline_parallel_size, async_scheduling=settings.async_scheduling
    )
    return Layout(
        groups=groups,
        caches=placed,
        layers=len(layers),
        block_size=block,
        in_flight_tokens=settings.max_num_batched_tokens * batches,
        context_ranks=settings.decode_context_parallel_size,
        mamba_cache_mode=settings.mamba_cache_mode,
        speculative_blocks=settings.num_speculative_tokens if any(c.cache.kind == "state" for c in placed) else 0,
        mixed_pages=mixed,
        packed=packed,
        padding_layers=padding,
        state_padding=_state_padding(layers, settings, padded),
    )


def _mixed_pages(placed: Sequence[Placed]) -> bool:
    """All layers keep the whole context but with unlike pages: one group, each layer its own size."""
    found = {c.cache for c in placed}
    return len(found) > 1 and all(c.kind == "full" for c in found)


def _unify(placed: Sequence[Placed]) -> tuple[Placed, ...]:
    """Give all caches one page: smaller ones get more tokens per block (`unify_kv_cache_spec_page_size`)."""
    pages = {c.cache.page_bytes for c in placed}
    if len(pages) <= 1:
        return tuple(placed)
    largest = max(pages)
    done: Mapping[LayerCache, LayerCache] = {c.cache: _grown(c.cache, largest) for c in placed}
    return tuple(replace(c, cache=done[c.cache]) for c in placed)


def _grown(cache: LayerCache, page: int) -> LayerCache:
    if cache.kind == "state" or page % cache.page_bytes:
        return replace(cache, page_bytes=page)
    return replace(cache, block_size=cache.block_size * (page // cache.page_bytes), page_bytes=page)


def _group(placed: Sequence[Placed], settings: Settings, as_they_are: bool) -> tuple[tuple[Group, ...], int]:
    """Groups of equal size and the padding layers that makes (`_get_kv_cache_groups_uniform_page_size`)."""
    kinds: dict[LayerCache, list[int]] = {}
    for one in placed:
        kinds.setdefault(one.cache, []).append(one.layer)
    if len(kinds) <= 1 or as_they_are:
        return tuple(Group(c, tuple(at)) for c, at in kinds.items()), 0
    counts = [len(at) for at in kinds.values()]
    size = min(counts)
    slack = group_size_slack(settings.version)
    if slack is not None and max(counts) < size * slack:
        size = max(counts)
    groups: list[Group] = []
    padding = 0
    for cache, members in kinds.items():
        number = -(-len(members) // size)
        padding += number * size - len(members)
        groups += [Group(cache, tuple(members[i::number])) for i in range(number)]
    return tuple(groups), padding


def _state_padding(layers: Sequence[LayerFacts], settings: Settings, padded: int) -> float:
    """Share by which padding grows the state page; 0 when nothing is padded."""
    state = max((state_bytes(x.recurrent, settings) for x in layers if x.recurrent), default=0)
    return padded / state - 1 if padded and state else 0.0
