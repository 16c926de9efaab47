"""What each layer caches on one rank, in bytes per block: keys and values, latents, indexer keys, recurrent states."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from typing import Literal

import msgspec

from trimtab.facts.layers import Attention, LayerFacts, Recurrent, SideCache
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import hybrid_kv_manager, mla_is_latent

CacheKind = Literal["full", "sliding", "chunked", "state", "cross"]

FP8_DS_MLA_BYTES = 656
"""Bytes per token of DeepSeek sparse MLA's cache in fp8: 512 latent, 16 of scales, 64 rope in 16 bit (FlashMLA)."""
FP8_V4_BYTES = 584
"""The same of DeepSeek V4: 448 latent, 64 rope in 16 bit, 8 of scales (v1/kv_cache_interface.py)."""
INDEXER_SCALE_BYTES = 4
"""One fp32 scale per 128 numbers of the indexer's keys (deepseek_v2.py DeepseekV32IndexerCache)."""
V4_ALIGNMENT = 576


class LayerCache(msgspec.Struct, frozen=True):
    """One cache of one layer (v1/kv_cache_interface.py `KVCacheSpec`). `reach`: window or chunk in tokens."""

    kind: CacheKind
    block_size: int
    page_bytes: int
    reach: int = 0

    @property
    def token_bytes(self) -> float:
        return self.page_bytes / self.block_size


class Placed(msgspec.Struct, frozen=True):
    """A cache and the layer that it belongs to."""

    layer: int
    cache: LayerCache


NARROW = ("turboquant_", "octave_", "ultraquant_")
"""Formats of under 8 bits whose slots are not reckoned here: taken as 8 bit, the most they can be."""


def kv_element_bytes(settings: Settings) -> int:
    """Bytes of one cached number: 1 for fp8 and int8 caches and at most for narrower ones, else the model's dtype."""
    name = settings.kv_cache_dtype
    if name == "auto":
        return 4 if settings.dtype == "float32" else 2
    return 1 if name.startswith(("fp8", "int8", *NARROW)) else 4 if name == "float32" else 2


def is_packed(layers: Sequence[LayerFacts]) -> bool:
    """Whether the model caches as DeepSeek V4 does: compressed caches beside a window."""
    return any(x.attention is not None and x.attention.side for x in layers)


def place_caches(settings: Settings, layers: Sequence[LayerFacts]) -> tuple[tuple[Placed, ...], int, int]:
    """Every cache in order of the layers, the attention block in tokens, and the page that states are padded to."""
    element = kv_element_bytes(settings)
    block, padded = _block_size(settings, layers, element)
    packed = is_packed(layers)
    made: dict[int, tuple[LayerCache, ...]] = {}
    found: list[Placed] = []
    for at, layer in enumerate(layers):
        if id(layer) not in made:
            made[id(layer)] = tuple(_caches(layer, settings, element, block, padded, packed))
        found += [Placed(at, c) for c in made[id(layer)]]
    return tuple(found), block, padded


def state_bytes(mixer: Recurrent | None, settings: Settings) -> int:
    """Bytes of one sequence's state in one layer on one rank; drafts lengthen the convolution's window."""
    if mixer is None:
        return 0
    total = 0
    for state in mixer.states:
        held = state.rank_bytes(settings.tensor_parallel_size)
        if state.name == "ssm" and settings.ssm_bytes is not None:
            held = held * settings.ssm_bytes // state.element_bytes
        if state.name == "conv" and state.rest and settings.num_speculative_tokens:
            held = held // state.rest[0] * (state.rest[0] + settings.num_speculative_tokens)
        total += held
    return total


def _block_size(settings: Settings, layers: Sequence[LayerFacts], element: int) -> tuple[int, int]:
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
        tokens = -(-state // per_token)
        block = max(block, chunk * -(-tokens // chunk))
    else:
        block = max(block, block * -(-state // (block * per_token)))
    return block, block * per_token


def _caches(
    layer: LayerFacts, settings: Settings, element: int, block: int, padded: int, packed: bool
) -> list[LayerCache]:
    found: list[LayerCache] = []
    if layer.recurrent is not None and settings.engine == "V1":
        page = padded or state_bytes(layer.recurrent, settings)
        size = block if settings.mamba_cache_mode in ("align", "all") else settings.max_model_len
        found.append(LayerCache("state", size, page))
    attention = layer.attention
    if attention is None or attention.shares_kv or attention.encoder_only:
        return found
    if packed:
        return found + _v4(attention, element, block)
    found.append(_attention_cache(attention, settings, element, block))
    if attention.indexer is not None and mla_is_latent(settings.version):
        keys = attention.indexer.head_dim
        row = keys + keys // 128 * INDEXER_SCALE_BYTES if attention.indexer.element == "fp8" else keys * 2
        found.append(LayerCache("full", block, block * row))
    return found


def _attention_cache(attention: Attention, settings: Settings, element: int, block: int) -> LayerCache:
    page = _page(attention, settings, element, block)
    if attention.cross:
        return LayerCache("cross", block, page)
    grouped = hybrid_kv_manager(settings.version) and settings.engine == "V1"
    if grouped and not settings.disable_hybrid_kv_cache_manager:
        if attention.window:
            return LayerCache("sliding", block, page, attention.window)
        if attention.chunk:
            return LayerCache("chunked", block, page, attention.chunk)
    return LayerCache("full", block, page)


def _page(attention: Attention, settings: Settings, element: int, tokens: int) -> int:
    """Bytes of `tokens` tokens of one layer's cache on one rank."""
    if attention.kv_lora_rank is not None and not mla_is_latent(settings.version):
        return attention.heads // settings.tensor_parallel_size * 256 * 2 * element * tokens
    if attention.kv_lora_rank is not None and attention.indexer is not None and element == 1:
        return FP8_DS_MLA_BYTES * tokens
    if attention.kv_lora_rank is None and settings.kv_cache_dtype.startswith(("nvfp4", "int4", "int8_per", "fp8_per")):
        return _packed_heads(attention, settings) * tokens
    return attention.kv_elements(settings.tensor_parallel_size) * element * tokens


def _packed_heads(attention: Attention, settings: Settings) -> int:
    """Bytes a token: 4 bits and an fp8 scale for every 16 numbers (nvfp4), or 4 or 8 bits and a 32-bit scale for every
    key and value of a head (0.26 v1/kv_cache_interface.py `real_page_size_bytes`, `unpadded_page_size_bytes`)."""
    name = settings.kv_cache_dtype
    total = 0
    for width in (attention.head_dim, attention.v_head_dim):
        if name.startswith("nvfp4"):
            total += width // 2 + width // 16
        else:
            total += (width // 2 if name.startswith("int4") else width) + 4
    return max(1, attention.kv_heads // settings.tensor_parallel_size) * total


def _v4(attention: Attention, element: int, block: int) -> list[LayerCache]:
    """A window of 64-token blocks and the compressed caches (0.26 models/deepseek_v4/attention.py, compressor.py).

    Compressor states share tensors with the compressed pages, which fixes their block at 4 (ratio 4) or 8 tokens.
    """
    row = FP8_V4_BYTES if element == 1 else attention.head_dim * element
    found = [LayerCache("sliding", 64, _aligned(64 * row), attention.window or block)]
    ratio = next((s.tokens_per_entry for s in attention.side if s.name == "compressed"), 1)
    for side in attention.side:
        if side.window is not None:
            tokens = 4 if ratio == 4 else 8
            found.append(LayerCache("sliding", tokens, _aligned(tokens * side.width * 4), side.window))
        else:
            found.append(LayerCache("full", block, _aligned(block // side.tokens_per_entry * _entry(side, row))))
    return found


def _entry(side: SideCache, row: int) -> int:
    return side.width + side.width // 128 * INDEXER_SCALE_BYTES if side.element == "fp8" else row


def _aligned(size: int) -> int:
    return -(-size // V4_ALIGNMENT) * V4_ALIGNMENT
