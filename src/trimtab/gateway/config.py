"""What a gateway's configuration file may say: a record per thing, checked when it is read; durations in seconds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Kind = Literal["vllm", "openai", "anthropic"]
Choice = Literal["least-outstanding", "prefix-affine"]
Positive = Annotated[float, Meta(gt=0, le=1e9)]  # neither .inf nor what no clock can count

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

    env: Annotated[str | None, Meta(description="Name of an environment variable.")] = None
    file: Annotated[str | None, Meta(description="A file that holds the key alone.")] = None
    stored: Annotated[str | None, Meta(description="The name under which the store keeps it encrypted.")] = None


class Bounds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a back end is waited for: fit for generation, where the first byte may take minutes."""

    connect: Annotated[Positive, Meta(description="Until it takes the connection.")] = 5.0
    first_byte: Annotated[Positive, Meta(description="Until its answer begins.")] = 600.0
    between: Annotated[Positive, Meta(description="Between two pieces of its answer.")] = 120.0
    total: Annotated[Positive, Meta(description="Until its answer is whole.")] = 3600.0


class BackEndConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One server."""

    url: Annotated[str, Meta(description="Its base URL, with or without /v1.")]
    kind: Annotated[Kind, Meta(description="What it is, which says what it may be asked for.")] = "openai"
    key: Annotated[KeySource | None, Meta(description="Where the key that it asks for is taken from.")] = None
    protocols: Annotated[
        tuple[str, ...] | None, Meta(description="What it may be asked for, where that is not what its kind says.")
    ] = None
    weight: Annotated[Positive, Meta(description="Its share among equal replicas.")] = 1.0
    bounds: Annotated[Bounds, Meta(description="How long it is waited for.")] = Bounds()
    health: Annotated[
        str | None, Meta(description="The path that is asked to see whether it is up; /health for kind vllm.")
    ] = None
    health_every: Annotated[Positive, Meta(description="Seconds between two such looks.")] = 5.0


class TargetConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One replica of a model."""

    back_end: Annotated[str, Meta(description="The name of the back end that has it.")]
    model: Annotated[str | None, Meta(description="The id that it goes by there; the model's own name if absent.")] = (
        None
    )
    weight: Annotated[Positive | None, Meta(description="Its share, where that is not the back end's.")] = None


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a million tokens, in whatever currency."""

    prompt: Annotated[float, Meta(ge=0, description="Of prompt tokens.")] = 0.0
    completion: Annotated[float, Meta(ge=0, description="Of completion tokens.")] = 0.0
    cached: Annotated[float | None, Meta(description="Of prompt tokens from a cache; as prompt when absent.")] = None


class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model name that clients may ask for: equal replicas first, then other models in their order."""

    targets: Annotated[tuple[TargetConfig, ...], Meta(description="Its replicas.")] = ()
    fall_back: Annotated[tuple[str, ...], Meta(description="Models that are asked when no replica answers.")] = ()
    choose: Annotated[Choice, Meta(description="How one of several replicas is chosen.")] = "least-outstanding"
    hedge_after: Annotated[
        Positive | None, Meta(description="Seconds without a first byte after which a second replica is asked too.")
    ] = None
    long_prompt_bytes: Annotated[int, Meta(gt=0, description="A body of more bytes is a long prompt.")] = 64 << 10
    long_prompts: Annotated[
        int | None, Meta(description="How many of those may be in flight at once, over all keys.")
    ] = None
    price: Annotated[Price | None, Meta(description="What its tokens cost, for budgets.")] = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. Models that no entry names but a back end lists are served under their own ids."""

    listen: Annotated[str, Meta(description="HOST:PORT to listen on.")] = "127.0.0.1:8080"
    store: Annotated[
        str | None, Meta(description="An SQLAlchemy URL; SQLite in Trimtab's data directory when absent.")
    ] = None
    back_ends: Annotated[dict[str, BackEndConfig], Meta(description="Servers by a name of yours.")] = {}
    models: Annotated[dict[str, ModelConfig], Meta(description="Model names that clients may ask for.")] = {}
    local: Annotated[bool, Meta(description="Whether servers that Trimtab runs here are found by themselves.")] = True
    max_body: Annotated[int, Meta(gt=0, description="Bytes that a request's body may have.")] = 32 << 20
    max_head: Annotated[int, Meta(ge=1024, description="Bytes that its request line and headers may have.")] = 64 << 10
    request_timeout: Annotated[Positive, Meta(description="For a client to send its request.")] = 30.0
    idle_timeout: Annotated[Positive, Meta(description="For which a connection may be silent.")] = 75.0
    drain: Annotated[
        Positive, Meta(description="Seconds that running requests may take when the gateway is asked to end.")
    ] = 600.0
    trusted_proxies: Annotated[
        tuple[str, ...], Meta(description="Networks whose X-Forwarded-For is believed.")
    ] = ()  # fmt: skip
    cors: Annotated[tuple[str, ...], Meta(description="Origins whose pages may ask; none by default.")] = ()
    tls_certificate: Annotated[str | None, Meta(description="A PEM file with the certificate chain.")] = None
    tls_key: Annotated[str | None, Meta(description="A PEM file with its private key.")] = None
    access_log: Annotated[str | None, Meta(description='A file for a line a request, or "-" for stdout.')] = None
    metrics: Annotated[bool, Meta(description="Whether /metrics is served.")] = True
    admin: Annotated[bool, Meta(description="Whether the admin API is served under /admin.")] = True
    console: Annotated[bool, Meta(description="Whether the console is served under /console.")] = True
    otlp: Annotated[str | None, Meta(description="Where OpenTelemetry traces go, e.g. http://host:4318.")] = None


def schema() -> dict[str, Any]:
    """The JSON schema of the file."""
    found = msgspec.json.schema(Config)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Trimtab gateway", **found}
