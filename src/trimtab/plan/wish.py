"""What is planned for: the user's wish and the task (model, cards, vLLM), and which wishes make no sense."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from trimtab.errors import UsageError
from trimtab.facts.model import ModelFacts
from trimtab.messages import msg
from trimtab.plan.memory.budget import Budget
from trimtab.plan.memory.card import Card

Prefer = Literal["latency", "throughput", "balanced"]
PREFERENCES: tuple[Prefer, ...] = ("latency", "throughput", "balanced")
DEFAULT_CONCURRENCY = 4
"""Requests at once when no wish names a number: the least that verification drives."""


class Wish(msgspec.Struct, frozen=True):
    """What the user wants: tokens of context per request and requests at once.

    `input_tokens` and `output_tokens` are of a typical request; where both are given, `concurrency` counts requests of
    that size, and one of the whole `context` fits beside none. Else each request is reckoned at full context.
    """

    context: int | None = None
    concurrency: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    prefer: Prefer = "balanced"

    @property
    def request_tokens(self) -> int:
        """Tokens that one request holds at its end."""
        if self.input_tokens and self.output_tokens:
            return self.input_tokens + self.output_tokens
        return self.context or 1


class Task(msgspec.Struct, frozen=True):
    """What does not change during the search. `pinned` are flags (vLLM's names, underscores) that the user set."""

    model_path: str
    served_name: str
    model: ModelFacts
    cards: tuple[Card, ...]
    version: str
    pinned: Mapping[str, object]
    remote_code: bool = False
    any_vllm: bool = False
    """Whether the version is the planner's to choose; `version` is then the newest known."""
    aliases: tuple[str, ...] = ()
    """Further names under which it is served."""

    @property
    def on_cpu(self) -> bool:
        return self.cards[0].vendor == "cpu"

    @property
    def has_experts(self) -> bool:
        return any(layer.moe for layer in self.model.layers)

    @property
    def has_latent_cache(self) -> bool:
        """Whether every tensor rank would hold the same cache (MLA)."""
        return any(x.attention is not None and x.attention.kv_lora_rank is not None for x in self.model.layers)


def read_preference(text: str) -> Prefer:
    """One of PREFERENCES. UsageError naming the nearest."""
    found = next((p for p in PREFERENCES if p == text.strip().lower()), None)
    if found is not None:
        return found
    near = difflib.get_close_matches(text.lower(), PREFERENCES, 1, 0.4)
    raise UsageError(
        msg("--prefer does not take {value}", value=repr(text)),
        hint=msg("Did you mean {near}?", near=near[0])
        if near
        else msg("It takes {names}.", names=", ".join(PREFERENCES)),
    )


def alike(cards: Sequence[Card]) -> tuple[Card, ...]:
    """Cards of mixed kinds as so many of the weakest: ranks are equal, so the smallest sets the budget.

    UsageError for cards of several makers, which no single vLLM drives.
    """
    makers = sorted({c.vendor for c in cards})
    if len(makers) > 1:
        raise UsageError(
            msg("one vLLM cannot use cards of several makers: {makers}", makers=", ".join(makers)),
            hint=msg("Name cards of one maker, and plan a server for each."),
        )
    if len(set(cards)) == 1:
        return tuple(cards)
    least = min(cards, key=lambda c: c.total_gib - c.taken_gib)
    weakest = replace(
        least,
        capability=min(c.capability for c in cards),
        nvlink=all(c.nvlink for c in cards),
        bandwidth_gb_s=_least(c.bandwidth_gb_s for c in cards),
        tflops=_least(c.tflops for c in cards),
        link_gb_s=_least(c.link_gb_s for c in cards),
    )
    return (weakest,) * len(cards)


def _least(numbers: Iterable[float | None]) -> float | None:
    """The smallest, None where one is not known."""
    found = list(numbers)
    known = [n for n in found if n is not None]
    return min(known) if len(known) == len(found) else None


def settled_wish(task: Task, wish: Wish) -> Wish:
    """The wish with what the user pinned and what follows from it.

    UsageError: a number below 1, more context than the model has positions, or wishes that contradict each other.
    """
    _positive(wish)
    _in_range(task)
    wish = _with_lengths(_with_pinned(task, wish))
    _positive(wish)
    longest = task.model.max_positions
    if wish.context and longest and wish.context > longest:
        raise UsageError(
            msg(
                "a context of {wanted:,} tokens is beyond the model's {longest:,}", wanted=wish.context, longest=longest
            ),
            hint=msg(
                "Ask for at most {longest}, or give the model a rope scaling that its makers tested.", longest=longest
            ),
        )
    return wish


def _in_range(task: Task) -> None:
    share = task.pinned.get("gpu_memory_utilization")
    if isinstance(share, int | float) and not 0 < share <= 1:
        raise UsageError(
            msg("--gpu-memory-utilization is {share}; vLLM takes shares above 0, up to 1", share=share),
            hint=msg("Leave it out: the plan finds the highest that is safe."),
        )
    batch = task.pinned.get("max_num_batched_tokens")
    if isinstance(batch, int):
        require_positive("--max-num-batched-tokens", batch)


def _with_pinned(task: Task, wish: Wish) -> Wish:
    """--max-model-len is the context, --max-num-seqs the concurrency; "auto" (-1) leaves the length to vLLM."""
    length, seqs = task.pinned.get("max_model_len"), task.pinned.get("max_num_seqs")
    if isinstance(length, int) and length != -1:
        if wish.context is not None and wish.context != length:
            raise _contradiction("--context", wish.context, "--max-model-len", length)
        wish = replace(wish, context=length)
    if isinstance(seqs, int) and "data_parallel_size" not in task.pinned:
        if wish.concurrency is not None and wish.concurrency > seqs:
            raise _contradiction("--concurrency", wish.concurrency, "--max-num-seqs", seqs)
        wish = replace(wish, concurrency=wish.concurrency or seqs)
    return wish


def _with_lengths(wish: Wish) -> Wish:
    asked = (wish.input_tokens or 0) + (wish.output_tokens or 0)
    if wish.context is None:
        both = wish.input_tokens is not None and wish.output_tokens is not None
        return replace(wish, context=asked) if both else wish
    if asked > wish.context:
        raise UsageError(
            msg(
                "--input {given:,} and --output {made:,} make {asked:,} tokens, more than the context of {context:,}",
                given=wish.input_tokens or 0,
                made=wish.output_tokens or 0,
                asked=asked,
                context=wish.context,
            ),
            hint=msg("Raise --context, or leave it out: then it is their sum."),
        )
    return wish


def _positive(wish: Wish) -> None:
    for name, value in (
        ("--context", wish.context),
        ("--concurrency", wish.concurrency),
        ("--input", wish.input_tokens),
        ("--output", wish.output_tokens),
    ):
        if value is not None:
            require_positive(name, value)


def require_positive(name: str, value: int) -> None:
    """UsageError for a number below 1."""
    if value < 1:
        raise UsageError(
            msg("{name} is {value}; it must be 1 or more", name=name, value=value),
            hint=msg("Give a number of at least 1, or leave {name} out.", name=name),
        )


def _contradiction(wished: str, value: int, flag: str, pinned: int) -> UsageError:
    return UsageError(
        msg("{wished} {value} and {flag} {pinned} contradict each other", wished=wished, value=value, flag=flag,
            pinned=pinned),
        hint=msg("Leave out one of the two."),
    )  # fmt: skip


def held(budget: Budget, wish: Wish) -> float:
    """Requests of the wished size that the KV caches of all data ranks hold at once."""
    ranks = budget.settings.data_parallel_size
    blocks = budget.layout.request_blocks(wish.request_tokens)
    if not blocks:
        return float(wish.concurrency or 1)
    return ranks * budget.capacity.num_blocks / blocks
