"""What a gateway's configuration file may say: a record per thing, checked when it is read; durations in seconds."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["vllm", "openai", "anthropic"]
Choice = Literal["least-outstanding", "prefix-affine"]

# What a back end of each kind is asked for unless its `protocols` say otherwise.
PROTOCOLS: dict[str, frozenset[str]] = {
    "vllm": frozenset(
        {"chat", "completions", "responses", "messages", "count_tokens", "embeddings", "rerank", "score", "tokenize",
         "detokenize", "classify", "pooling", "audio"}
    ),
    "openai": frozenset({"chat", "completions", "responses", "embeddings", "audio"}),
    "anthropic": frozenset({"messages", "count_tokens"}),
}  # fmt: skip


class KeySource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a provider's key is taken from: exactly one of the three."""

    env: str | None = None
    file: str | None = None
    stored: str | None = None  # the name under which `trimtab keys provider` keeps it encrypted


class Bounds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a back end is waited for, seconds: fit for generation, where the first byte may take minutes."""

    connect: float = 5.0
    first_byte: float = 600.0
    between: float = 120.0
    total: float = 3600.0


class BackEndConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One server. `url` with or without /v1."""

    url: str
    kind: Kind = "openai"
    key: KeySource | None = None
    protocols: tuple[str, ...] | None = None
    weight: float = 1.0
    bounds: Bounds = Bounds()
    health: str | None = None  # the path that is asked every `health_every`; /health for kind vllm
    health_every: float = 5.0


class TargetConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One replica of a model: on which back end, and the id that it goes by there (the model's own name if absent)."""

    back_end: str
    model: str | None = None
    weight: float | None = None


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a million tokens, in whatever currency."""

    prompt: float = 0.0
    completion: float = 0.0
    cached: float | None = None  # as prompt when absent


class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model name that clients may ask for: equal replicas first, then other models in their order."""

    targets: tuple[TargetConfig, ...]
    fall_back: tuple[str, ...] = ()
    choose: Choice = "least-outstanding"
    hedge_after: float | None = None  # seconds without a first byte after which a second replica is asked too
    long_prompt_bytes: int = 64 << 10  # a body of more is a long prompt
    long_prompts: int | None = None  # of those in flight at once, over all keys
    price: Price | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. Models that no entry names but a back end lists are served under their own ids."""

    listen: str = "127.0.0.1:8080"
    store: str | None = None  # an SQLAlchemy URL; SQLite in Trimtab's data directory when absent
    back_ends: dict[str, BackEndConfig] = {}
    models: dict[str, ModelConfig] = {}
    local: bool = True  # whether the servers that Trimtab runs on this machine are found by themselves
    max_body: int = 32 << 20  # bytes
    request_timeout: float = 30.0  # for a client to send its request
    idle_timeout: float = 75.0
    trusted_proxies: tuple[str, ...] = ()  # networks whose X-Forwarded-For is believed
    cors: tuple[str, ...] = ()  # origins
    tls_certificate: str | None = None
    tls_key: str | None = None
    access_log: str | None = None  # a file, or "-" for the standard output
    metrics: bool = True
    otlp: str | None = None  # where OpenTelemetry traces go
