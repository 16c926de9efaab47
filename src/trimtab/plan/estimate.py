"""How fast a plan can be at best and at worst: a roofline of memory, arithmetic and links. An estimate, no promise."""

from __future__ import annotations

import msgspec

from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.allocator import GIB
from trimtab.plan.memory.budget import Budget
from trimtab.plan.memory.caches import kv_element_bytes
from trimtab.plan.memory.card import Card

WORST_SHARE = 0.5
"""Of the peaks of memory and arithmetic, what a plan reaches at worst. Qwen2.5-7B on one H200 (0.26, 1,024 in, 256 out)
reached 0.61 to 0.72 of them with 2, 8, 64 and 256 requests at once; on other cards it is an assumption."""
REDUCE_S = 20e-6
"""At worst, what one all-reduce takes beside its bytes, launch included; an assumption."""
TOKEN_BOUND_S = 0.2
"""Between two tokens of an answer, at most, when latency is preferred: five tokens a second are as fast as people read
(and what MLPerf asks of a Llama-2-70B server)."""
OUTPUT_TOKENS = 256
"""Tokens of a typical answer when the wish names none (the default of `facts/workload.py`)."""


class Span(msgspec.Struct, frozen=True):
    """Seconds or tokens per second, from the lower bound to the higher."""

    low: float
    high: float


class Estimate(msgspec.Struct, frozen=True):
    """Bounds for `concurrency` requests of `input_tokens` and `output_tokens`; None where a figure has no source.

    `token_s`: between two tokens of a request while nobody prefills. `stall_s`: the same while one longest prompt does.
    `first_token_s`: of one prompt on an idle server. `output_tokens_s`: of all requests together.
    """

    concurrency: int
    input_tokens: int
    output_tokens: int
    token_s: Span | None = None
    stall_s: Span | None = None
    first_token_s: Span | None = None
    output_tokens_s: Span | None = None
    missing: tuple[str, ...] = ()


class Work(msgspec.Struct, frozen=True):
    """What one step costs a rank: bytes of its memory, floating-point operations, bytes over the links, messages.

    `hosted`: bytes of weights that are read from the host's memory.
    """

    read: float = 0.0
    operations: float = 0.0
    sent: float = 0.0
    messages: int = 0
    hosted: float = 0.0


def host_link_gb_s(card: Card) -> float:
    """GB/s from the host's memory to a card: PCIe with 16 lanes, 5.0 from Hopper on, 4.0 on Ampere and Ada, before 3.0.

    What the standard moves in one direction; cards with fewer lanes (RTX 4060 Ti, L4) move less.
    """
    return 64.0 if card.capability >= 9.0 else 32.0 if card.capability >= 8.0 else 16.0


def estimate(budget: Budget, concurrency: int, input_tokens: int | None, output_tokens: int | None) -> Estimate:
    """The bounds of a launch with so many requests at once; lengths default to the context less a typical answer."""
    settings = budget.settings
    made = output_tokens or min(OUTPUT_TOKENS, max(1, settings.max_model_len // 4))
    given = input_tokens or max(1, settings.max_model_len - made)
    card = budget.tightest.card
    missing = tuple(n for n in ("bandwidth_gb_s", "tflops") if getattr(card, n) is None)
    if card.bandwidth_gb_s is None or not budget.known:
        return Estimate(concurrency, given, made, missing=missing)
    each = -(-concurrency // settings.data_parallel_size)
    token = _seconds(budget, decode(budget, each, given + made // 2))
    if card.tflops is None:
        return Estimate(concurrency, given, made, token, missing=missing)
    prompt = first_token(budget, given)
    chunk = stall(budget, each)
    rate = [each * made / (made * t + each * p) for t, p in ((token.high, prompt.high), (token.low, prompt.low))]
    total = Span(rate[0] * settings.data_parallel_size, rate[1] * settings.data_parallel_size)
    return Estimate(concurrency, given, made, token, chunk, prompt, total)


def stall(budget: Budget, each: int) -> Span:
    """Seconds of one step that carries a whole batch of a longest prompt's last tokens beside `each` other requests."""
    tokens = min(budget.settings.max_num_batched_tokens, budget.settings.max_model_len)
    held = _seconds(budget, prefill(budget, tokens, budget.settings.max_model_len - tokens))
    beside = _seconds(budget, _cache_reads(budget, each, budget.settings.max_model_len))
    return Span(held.low, held.high + beside.high)


def first_token(budget: Budget, tokens: int) -> Span:
    """Seconds from a prompt of `tokens` to its first token when nothing else runs."""
    size = min(budget.settings.max_num_batched_tokens, tokens)
    steps = tokens / size
    first, last = (_seconds(budget, prefill(budget, size, before)) for before in (0, tokens - size))
    return Span(steps * (first.low + last.low) / 2, steps * (first.high + last.high) / 2)


def decode(budget: Budget, requests: int, length: int) -> Work:
    """One step of `requests` requests that hold `length` tokens each, over all stages of one replica."""
    settings, model = budget.settings, budget.model
    stages = settings.pipeline_parallel_size
    at_once = -(-requests // stages)  # a pipeline's stages each work on a share of the batch
    touched = _touched(model, at_once * (settings.data_parallel_size if settings.enable_expert_parallel else 1))
    weights = stages * _weight_bytes(budget, touched)
    cache = _cache_reads(budget, at_once, length).read
    operations = 2 * active_parameters(model) * at_once / settings.tensor_parallel_size
    hosted = stages * settings.cpu_offload_gb * GIB
    return Work(weights + cache, operations, *_reduces(budget, at_once), hosted)


def prefill(budget: Budget, tokens: int, before: int) -> Work:
    """One step over `tokens` of one prompt, `before` of which are done."""
    settings, model = budget.settings, budget.model
    ranks = settings.tensor_parallel_size
    stages = settings.pipeline_parallel_size
    seen = tokens * (before + tokens / 2)
    attention = sum(
        4 * x.attention.heads * x.attention.v_head_dim * min(seen, tokens * (x.attention.window or seen))
        for x in model.layers
        if x.attention is not None
    )
    operations = (2 * active_parameters(model) * tokens + attention) / ranks
    weights = stages * _weight_bytes(budget, _touched(model, tokens))
    return Work(weights, operations, *_reduces(budget, tokens), stages * settings.cpu_offload_gb * GIB)


def active_parameters(model: ModelFacts) -> float:
    """Parameters that one token is multiplied with: no embedding, and of the experts those that it is sent to."""
    parts = model.parameters_by_part
    moe = next((x.moe for x in model.layers if x.moe), None)
    experts = parts.get("experts", 0)
    used = experts * moe.per_token / moe.experts if moe is not None and moe.experts else experts
    beside = sum(parts.get(p, 0) for p in ("embedding", "vision", "audio", "projector", "mtp"))
    return model.parameters - experts - beside + used


def _touched(model: ModelFacts, tokens: int) -> float:
    """The share of the experts that `tokens` tokens need, when each chooses by itself."""
    moe = next((x.moe for x in model.layers if x.moe), None)
    if moe is None or not moe.experts:
        return 1.0
    return 1.0 - (1.0 - moe.per_token / moe.experts) ** tokens


def _weight_bytes(budget: Budget, touched: float) -> float:
    """Bytes of weights that a step reads on a rank of one stage."""
    stored = budget.model.bytes_by_part
    total = sum(stored.values()) or 1
    idle = stored.get("embedding", 0) * (not budget.model.tied_embeddings) / total
    experts = stored.get("experts", 0) / total
    return budget.tightest.weights.value * GIB * (1 - idle - experts + experts * touched)


def _cache_reads(budget: Budget, requests: int, length: int) -> Work:
    """Bytes of the KV cache that decoding reads on a rank, over all stages; windows read no more than they hold."""
    settings = budget.settings
    element = kv_element_bytes(settings)
    ranks = settings.tensor_parallel_size
    tokens = sum(
        x.attention.kv_elements(ranks) * min(length, x.attention.window or length)
        for x in budget.model.layers
        if x.attention is not None
    )
    return Work(read=requests * tokens * element)


def _reduces(budget: Budget, tokens: int) -> tuple[float, int]:
    """Bytes over a card's links and messages of a step's all-reduces: two a layer, each a ring over tensor ranks."""
    ranks = budget.settings.tensor_parallel_size
    if ranks == 1:
        return 0.0, 0
    reduces = 2 * budget.model.num_layers
    return reduces * tokens * budget.model.hidden_size * 2 * 2 * (ranks - 1) / ranks, reduces


def _seconds(budget: Budget, work: Work) -> Span:
    """The slower of memory and arithmetic, then the links: at the peaks, and at WORST_SHARE of them."""
    card = budget.tightest.card
    reading = work.read / ((card.bandwidth_gb_s or 1.0) * 1e9)
    peak = (card.tflops or 0.0) * 1e12 * _packed_factor(budget)
    reckoning = work.operations / peak if peak else 0.0
    sending = work.sent / ((card.link_gb_s or 32.0) / 2 * 1e9) + work.hosted / (host_link_gb_s(card) * 1e9)
    best = max(reading, reckoning) + sending
    return Span(best, (reading + reckoning + sending) / WORST_SHARE + work.messages * REDUCE_S)


def _packed_factor(budget: Budget) -> int:
    """2 where matrices are multiplied in fp8, which from capability 8.9 on runs at twice the 16-bit peak."""
    found = budget.model.quantisation
    fp8 = found is not None and "fp8" in found.scheme.name
    return 2 if fp8 and budget.tightest.card.capability >= 8.9 else 1
