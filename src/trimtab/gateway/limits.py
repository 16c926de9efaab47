"""What a key may do and how much: the record that keys and plans share. Nothing here counts anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

# The names by which a scope gives an endpoint, and its paths without /v1.
ENDPOINTS: Mapping[str, frozenset[bytes]] = {
    "chat": frozenset({b"/chat/completions"}),
    "completions": frozenset({b"/completions"}),
    "responses": frozenset({b"/responses"}),
    "messages": frozenset({b"/messages"}),
    "count_tokens": frozenset({b"/messages/count_tokens"}),
    "embeddings": frozenset({b"/embeddings"}),
    "rerank": frozenset({b"/rerank"}),
    "score": frozenset({b"/score"}),
    "classify": frozenset({b"/classify"}),
    "pooling": frozenset({b"/pooling"}),
    "tokenize": frozenset({b"/tokenize"}),
    "detokenize": frozenset({b"/detokenize"}),
    "audio": frozenset({b"/audio/transcriptions", b"/audio/translations", b"/audio/speech"}),
}


# For whoever reads the record from JSON; `faults` judges one that was made otherwise.
Count = Annotated[int, Meta(ge=1, lt=1 << 62)]
Amount = Annotated[float, Meta(ge=0, lt=1 << 62)]
Pattern = Annotated[str, Meta(pattern=r"\S")]
Endpoint = Annotated[str, Meta(pattern=f"^({'|'.join(ENDPOINTS)})$")]


class Limits(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """None: not limited. Of a key with a plan: as its plan says."""

    models: tuple[Pattern, ...] | None = None  # names, or patterns with *, ? and [...]
    endpoints: tuple[Endpoint, ...] | None = None
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None  # of prompts and answers together
    concurrency: Count | None = None  # requests at once
    long_prompts: Count | None = None  # at once, for each model
    context: Count | None = None  # estimated tokens of one prompt
    tokens_per_day: Count | None = None  # days and months are those of UTC
    tokens_per_month: Count | None = None
    money_per_day: Amount | None = None  # in the currency of the prices
    money_per_month: Amount | None = None


NUMBERS = tuple(name for name in Limits.__struct_fields__ if name not in ("models", "endpoints"))

# Fit for somebody who programs with an assistant: whole repositories in the prompt, bursts of tool calls, no search
# through a vector store of millions. Every store holds it as the plan `coding`, which may be changed like any other.
PRESETS: Mapping[str, Limits] = {
    "coding": Limits(
        endpoints=("chat", "completions", "responses", "messages", "count_tokens", "embeddings", "tokenize"),
        requests_per_minute=120,
        tokens_per_minute=4_000_000,
        concurrency=8,
        long_prompts=2,
        context=262_144,
        tokens_per_day=200_000_000,
    )
}


def merged(own: Limits, plan: Limits | None) -> Limits:
    """The limits in force of a key: its own where it states one, else its plan's."""
    if plan is None:
        return own
    stated = {name: value for name, value in msgspec.structs.asdict(own).items() if value is not None}
    return msgspec.structs.replace(plan, **stated)


def faults(limits: Limits) -> list[tuple[str, object]]:
    """The fields that make no sense, with their values: an unknown endpoint, an empty pattern, a number below 1."""
    wrong: list[tuple[str, object]] = []
    wrong += [("endpoints", name) for name in limits.endpoints or () if name not in ENDPOINTS]
    wrong += [("models", name) for name in limits.models or () if not name.strip()]
    for name in NUMBERS:
        value = getattr(limits, name)
        least = 0 if name.startswith("money") else 1
        if value is not None and not least <= value < 1 << 62:
            wrong.append((name, value))
    return wrong
