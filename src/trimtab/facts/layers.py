"""What one decoder layer is: its mixer (attention or a recurrent state), its feed-forward part and its weights."""

from __future__ import annotations

from typing import Literal

import msgspec

from trimtab.facts.weights import Span, Weight

AttentionKind = Literal["mha", "gqa", "mqa", "mla"]
RecurrentKind = Literal["mamba1", "mamba2", "gdn", "kda", "lightning", "short_conv"]


class Indexer(msgspec.Struct, frozen=True):
    """Sparse attention's indexer: its own small key cache, one key of `head_dim` per token.

    `element`: "fp8" with one scale per 128 numbers (DeepSeek), or 16 bit ("kv", MiniMax M3).
    """

    heads: int
    head_dim: int
    top_k: int
    element: Literal["fp8", "kv"] = "fp8"


class SideCache(msgspec.Struct, frozen=True):
    """A cache that a layer keeps beside its keys and values: one entry of `width` numbers per `tokens_per_entry`.

    `element`: "kv" (the KV cache's dtype), "fp8" (with one fp32 scale per 128) or "float32"; `window`: only so many
    tokens are kept.
    """

    name: str
    width: int
    element: Literal["kv", "fp8", "float32"]
    tokens_per_entry: int = 1
    window: int | None = None


class Attention(msgspec.Struct, frozen=True):
    """An attention mixer and what it caches per token.

    `window` tokens of sliding window, or `chunk` tokens of chunked-local attention, else the whole context.
    MLA caches one vector of `kv_lora_rank` + `qk_rope_head_dim` for all heads, on every rank.
    `shares_kv`: it reads the cache of an earlier layer and has none of its own. `cross`: keys come from an encoder.
    `encoder_only`: nothing is cached. `side`: further caches (DeepSeek V4).
    """

    kind: AttentionKind
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    window: int | None = None
    chunk: int | None = None
    kv_lora_rank: int | None = None
    qk_rope_head_dim: int | None = None
    q_lora_rank: int | None = None
    indexer: Indexer | None = None
    shares_kv: bool = False
    cross: bool = False
    encoder_only: bool = False
    side: tuple[SideCache, ...] = ()

    def kv_elements(self, tp: int = 1) -> int:
        """Cached numbers per token on one of `tp` ranks (the indexer's keys not counted)."""
        if self.shares_kv or self.encoder_only:
            return 0
        if self.kv_lora_rank is not None:
            return self.kv_lora_rank + (self.qk_rope_head_dim or 0)
        return max(1, self.kv_heads // tp) * (self.head_dim + self.v_head_dim)


class StateShape(msgspec.Struct, frozen=True):
    """A recurrent state held per sequence: `spans` (heads, groups) split over ranks, times `rest`.

    A "conv" state's rest is (kernel - 1); vLLM adds the number of speculative tokens to it. `element_bytes` is under
    --mamba-cache-dtype auto (and --mamba-ssm-cache-dtype auto for "ssm").
    """

    name: Literal["conv", "ssm"]
    spans: tuple[Span, ...]
    rest: tuple[int, ...]
    element_bytes: int

    def rank_shape(self, tp: int = 1) -> tuple[int, ...]:
        return (sum(s.on_rank(tp) for s in self.spans), *self.rest)

    def rank_bytes(self, tp: int = 1) -> int:
        total = self.element_bytes
        for n in self.rank_shape(tp):
            total *= n
        return total


class Recurrent(msgspec.Struct, frozen=True):
    """A mixer that keeps a state of fixed size per sequence instead of keys and values."""

    kind: RecurrentKind
    states: tuple[StateShape, ...]


class Moe(msgspec.Struct, frozen=True):
    """A mixture-of-experts feed-forward part."""

    experts: int
    per_token: int
    intermediate: int
    shared_experts: int = 0
    shared_intermediate: int = 0
    latent: int = 0
    """Width to which tokens are projected before the experts see them (Nemotron 3); 0: none."""


class LayerFacts(msgspec.Struct, frozen=True):
    """One decoder layer. Equal layers of a model are the same object, so per-layer work can be cached by identity.

    A layer has attention, a recurrent mixer, both side by side (Falcon-H1) or neither (a bare feed-forward layer).
    """

    attention: Attention | None
    weights: tuple[Weight, ...]
    moe: Moe | None = None
    intermediate: int = 0
    recurrent: Recurrent | None = None

    @property
    def mixer(self) -> Attention | Recurrent | None:
        """The layer's only mixer, or the recurrent one of two."""
        return self.recurrent or self.attention

    @property
    def parameters(self) -> int:
        return sum(w.parameters for w in self.weights)


class Tower(msgspec.Struct, frozen=True):
    """An encoder beside the decoder (vision or audio): its weights and what one item costs.

    `tokens_per_item` is the largest number of embeddings that one image or clip becomes, where the config tells;
    `splits`: whether tensor parallelism splits it (some towers are replicated).
    """

    kind: str
    weights: tuple[Weight, ...]
    hidden_size: int = 0
    intermediate_size: int = 0
    layers: int = 0
    tokens_per_item: int | None = None
    splits: bool = True


class Draft(msgspec.Struct, frozen=True):
    """Layers for speculative decoding that ship with the model; loaded only when speculation asks for them."""

    method: str
    layers: tuple[LayerFacts, ...]
    weights: tuple[Weight, ...] = ()
