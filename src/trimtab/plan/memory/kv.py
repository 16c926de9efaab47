"""KV cache layout: what each layer caches, how vLLM groups layers into pools, and the blocks a request needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Literal

from trimtab.facts.layers import Attention, LayerFacts, Recurrent
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import (
    group_size_slack,
    hybrid_kv_manager,
    in_flight_batches,
    mla_is_latent,
)
from trimtab.plan.parallel import Stage

CacheKind = Literal["full", "sliding", "chunked", "state", "cross"]

FP8_DS_MLA_BYTES = 656
"""Bytes per token of DeepSeek sparse MLA's cache in fp8: 512 latent, 16 of scales, 64 rope in 16 bit (FlashMLA)."""


@dataclass(frozen=True, slots=True)
class LayerCache:
    """What one layer caches on one rank (v1/kv_cache_interface.py `KVCacheSpec`). `reach`: window or chunk."""

    kind: CacheKind
    block_size: int
    page_bytes: int
    reach: int = 0
    shape: tuple[int, ...] = ()

    @property
    def token_bytes(self) -> float:
        return self.page_bytes / self.block_size


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that share a block table: their cache and their indices in the model."""

    cache: LayerCache
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """All groups of a model. `uniform_pages` is False when one group holds layers of unlike page sizes."""

    groups: tuple[Group, ...]
    caches: tuple[LayerCache | None, ...]
    block_size: int
    in_flight_tokens: int
    context_ranks: int
    mamba_cache_mode: str
    speculative_blocks: int
    mixed_pages: bool = False
    padding_layers: int = 0
    state_padding: float = 0.0

    def block_bytes(self, stage: Stage) -> int:
        """Bytes of one block over all layers of a stage (kv_cache_utils.py `_pool_bytes_per_block`)."""
        if not self.groups:
            return 0
        if self.mixed_pages:
            return sum(c.page_bytes for c in self._of(stage) if c is not None)
        size = max(sum(stage.start <= i < stage.end for i in g.layers) for g in self.groups)
        return size * self.groups[0].cache.page_bytes

    def whole_block_bytes(self) -> int:
        """Bytes of one block over all layers of the model."""
        return self.block_bytes(Stage(0, len(self.caches), True, True))

    def request_blocks(self, length: int) -> int:
        """Blocks that one request of `length` tokens holds at most, over all groups."""
        if self.mixed_pages:
            return max(self._blocks(c, length) for c in {g.cache for g in self.groups})
        return sum(self._blocks(g.cache, length) for g in self.groups)

    def request_layer_bytes(self, stage: Stage, length: int) -> int:
        """Bytes that one request needs on a stage without padding: the sum over its layers."""
        return sum(self._blocks(c, length) * c.page_bytes for c in self._of(stage) if c is not None)

    def _of(self, stage: Stage) -> tuple[LayerCache | None, ...]:
        return self.caches[stage.start : stage.end]

    def _blocks(self, cache: LayerCache, length: int) -> int:
        if cache.kind == "sliding":
            return _cdiv(min(cache.reach - 1 + self.in_flight_tokens, length), cache.block_size) + 1
        if cache.kind == "chunked":
            return _cdiv(min(cache.reach + self.in_flight_tokens, length), cache.block_size)
        if cache.kind == "state":
            if self.mamba_cache_mode == "all":
                return _cdiv(length, cache.block_size) + self.speculative_blocks
            return (2 if self.mamba_cache_mode == "align" else 1) + self.speculative_blocks
        return _cdiv(_cdiv(length, self.context_ranks), cache.block_size)


def kv_element_bytes(settings: Settings, model: ModelFacts) -> int:
    """Bytes of one cached number: 1 for fp8 and int8 caches, else the model's dtype."""
    name = settings.kv_cache_dtype
    if name == "auto":
        return 4 if settings.dtype == "float32" else 2
    return 1 if name.startswith(("fp8", "int8")) else 4 if name == "float32" else 2


def layout(settings: Settings, model: ModelFacts, layers: Sequence[LayerFacts] | None = None) -> Layout:
    """The groups of `layers` (the model's own by default, drafts may be appended) under `settings`."""
    layers = model.layers if layers is None else layers
    element = kv_element_bytes(settings, model)
    block, padded = _block_size(settings, model, layers, element)
    made: dict[int, LayerCache | None] = {}
    caches: list[LayerCache | None] = []
    for layer in layers:
        if id(layer) not in made:
            made[id(layer)] = _cache(layer, settings, element, block, padded)
        caches.append(made[id(layer)])
    mixed = _mixed_pages(caches)
    if not mixed:
        caches = _unify(caches)
    groups, padding = _group(caches, settings, mixed)
    state = next((c for c in caches if c is not None and c.kind == "state"), None)
    return Layout(
        groups=groups,
        caches=tuple(caches),
        block_size=block,
        in_flight_tokens=settings.max_num_batched_tokens
        * in_flight_batches(
            settings.version,
            settings.runner,
            settings.pipeline_parallel_size,
            async_scheduling=settings.async_scheduling,
        ),
        context_ranks=settings.decode_context_parallel_size,
        mamba_cache_mode=settings.mamba_cache_mode,
        speculative_blocks=settings.num_speculative_tokens if state else 0,
        mixed_pages=mixed,
        padding_layers=padding,
        state_padding=_state_padding(layers, settings, padded),
    )


def _block_size(settings: Settings, model: ModelFacts, layers: Sequence[LayerFacts], element: int) -> tuple[int, int]:
    """Tokens per attention block, and the page that states are padded to (0: none).

    Hybrids raise the attention block until its page holds a state (0.26 platforms/interface.py
    `_align_hybrid_block_size`, 0.11 models/config.py `HybridAttentionMambaModelConfig`).
    """
    block = settings.block_size or 16
    state = max((state_bytes(x.recurrent, settings) for x in layers if x.recurrent), default=0)
    attention = next((x.attention for x in layers if x.attention), None)
    if settings.engine == "V0" or not state or attention is None:
        return block, 0
    per_token = _page(attention, settings, element, 1)
    if settings.mamba_cache_mode == "all":
        chunk = lcm(settings.mamba_block_size or 256, block)
        block = max(block, chunk * _cdiv(_cdiv(state, per_token), chunk))
    else:
        block = max(block, block * _cdiv(state, block * per_token))
    return block, block * per_token


def state_bytes(mixer: Recurrent | None, settings: Settings) -> int:
    """Bytes of one sequence's state in one layer on one rank."""
    if mixer is None:
        return 0
    total = 0
    for state in mixer.states:
        held = state.rank_bytes(settings.tensor_parallel_size)
        if state.name == "ssm" and settings.ssm_bytes is not None:
            held = held * settings.ssm_bytes // state.element_bytes
        total += held
    return total


def _page(attention: Attention, settings: Settings, element: int, tokens: int) -> int:
    """Bytes of `tokens` tokens of one layer's cache on one rank."""
    if attention.kv_lora_rank is not None and not mla_is_latent(settings.version):
        return attention.heads // settings.tensor_parallel_size * 256 * 2 * element * tokens
    if attention.kv_lora_rank is not None and attention.indexer is not None and element == 1:
        return FP8_DS_MLA_BYTES * tokens
    return attention.kv_elements(settings.tensor_parallel_size) * element * tokens


def _cache(layer: LayerFacts, settings: Settings, element: int, block: int, padded: int) -> LayerCache | None:
    mixer = layer.mixer
    if isinstance(mixer, Recurrent):
        if settings.engine == "V0":
            return None
        page = padded or state_bytes(mixer, settings)
        size = block if settings.mamba_cache_mode in ("align", "all") else settings.max_model_len
        return LayerCache("state", size, page, shape=(state_bytes(mixer, settings),))
    if mixer is None or mixer.shares_kv or mixer.encoder_only:
        return None
    page = _page(mixer, settings, element, block)
    if mixer.cross:
        return LayerCache("cross", block, page)
    grouped = hybrid_kv_manager(settings.version) and settings.engine == "V1"
    if grouped and not settings.disable_hybrid_kv_cache_manager:
        if mixer.window:
            return LayerCache("sliding", block, page, mixer.window)
        if mixer.chunk:
            return LayerCache("chunked", block, page, mixer.chunk)
    return LayerCache("full", block, page)


def _mixed_pages(caches: Sequence[LayerCache | None]) -> bool:
    """All layers keep the whole context but with unlike pages: one group, each layer its own size."""
    found = {c for c in caches if c is not None}
    return len(found) > 1 and all(c.kind == "full" for c in found)


def _unify(caches: Sequence[LayerCache | None]) -> list[LayerCache | None]:
    """Give all layers one page: smaller ones get more tokens per block (`unify_kv_cache_spec_page_size`)."""
    pages = {c.page_bytes for c in caches if c is not None}
    if len(pages) <= 1:
        return list(caches)
    largest = max(pages)
    done: Mapping[LayerCache, LayerCache] = {c: _grown(c, largest) for c in caches if c is not None}
    return [None if c is None else done[c] for c in caches]


def _grown(cache: LayerCache, page: int) -> LayerCache:
    if cache.kind == "state" or page % cache.page_bytes:
        return replace(cache, page_bytes=page)
    return replace(cache, block_size=cache.block_size * (page // cache.page_bytes), page_bytes=page)


def _group(caches: Sequence[LayerCache | None], settings: Settings, mixed: bool) -> tuple[tuple[Group, ...], int]:
    """Groups of equal size and the padding layers that makes (`_get_kv_cache_groups_uniform_page_size`)."""
    kinds: dict[LayerCache, list[int]] = {}
    for at, cache in enumerate(caches):
        if cache is not None:
            kinds.setdefault(cache, []).append(at)
    if len(kinds) <= 1 or mixed:
        return tuple(Group(c, tuple(at)) for c, at in kinds.items()), 0
    counts = [len(at) for at in kinds.values()]
    size = min(counts)
    slack = group_size_slack(settings.version)
    if slack is not None and max(counts) < size * slack:
        size = max(counts)
    groups: list[Group] = []
    padding = 0
    for cache, members in kinds.items():
        number = _cdiv(len(members), size)
        padding += number * size - len(members)
        groups += [Group(cache, tuple(members[i::number])) for i in range(number)]
    return tuple(groups), padding


def _state_padding(layers: Sequence[LayerFacts], settings: Settings, padded: int) -> float:
    """Share by which padding grows the state page; 0 when nothing is padded."""
    state = max((state_bytes(x.recurrent, settings) for x in layers if x.recurrent), default=0)
    return padded / state - 1 if padded and state else 0.0


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)
