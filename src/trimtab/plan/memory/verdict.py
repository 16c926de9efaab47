"""Whether a launch starts, and if not, what stops it first: checked in the order in which vLLM gets there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from trimtab.facts.model import ModelFacts
from trimtab.messages import Message, msg
from trimtab.plan.capacity import Capacity
from trimtab.plan.memory.allocator import GIB
from trimtab.plan.memory.graphs import graph_counts
from trimtab.plan.memory.rank import Rank
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import checks_free_memory, checks_length

Verdict = Literal[
    "fits", "unsafe_headroom", "kv_too_small_for_max_len", "no_kv_blocks", "oom_weights", "oom_profile",
    "oom_cuda_graph", "free_memory_below_utilization", "unknown",
]  # fmt: skip
Judged = tuple[Verdict, tuple[Message, ...]]

SAFE_HEADROOM_GIB = 0.3
"""Below this a sampler with penalties, a long prefill's workspace or another process ends the server."""
NCCL_HEADROOM_GIB = 2.0
"""The same before 0.11 where NCCL carries every all-reduce inside the graphs: 8 x L4 ended with 1.1 predicted to be
left. 0.5's own log speaks of 1 to 3 GiB."""
NCCL_LATER_HEADROOM_GIB = 1.2
"""The same from 0.11 on: 8 x RTX PRO 4500 ended with 1.1 predicted (0.28), 4 x RTX 3090 serve with 1.4 (0.21, 0.27)."""
NODES_HEADROOM_GIB = 5.0
"""The same over several hosts, whose transports hold buffers of their own: 32 x L40S ended with 3.8 predicted; 0.29's
graphs over two GB10 took 5 GiB."""
CARDS_PER_HOST = 8


def judge(settings: Settings, model: ModelFacts, ranks: Sequence[Rank], held: Capacity) -> Judged:
    """The first thing that stops the start, with its numbers, or that it fits."""
    if model.missing or not model.layers:
        return _unknown(settings, model, ranks)
    for rank in sorted(ranks, key=lambda r: r.kv_cache.value):
        found = _before_kv(settings, rank)
        if found:
            return found
    return _kv(settings, ranks, held) or _states(settings, model, held) or _after_kv(settings, ranks)


def _unknown(settings: Settings, model: ModelFacts, ranks: Sequence[Rank]) -> Judged:
    """Which fact is missing, and what is certain all the same: the checkpoint's tensors must be held somewhere."""
    said = [msg("not known of the model: {what}", what=", ".join(model.missing) or "its layers")]
    said += [
        msg("{name} is between {low} and {high} {unit}: {reason}", name=b.name, low=_shown(b.low), high=_shown(b.high),
            unit=b.unit, reason=b.reason)
        for b in model.bounds
    ]  # fmt: skip
    stored = model.stored_bytes_measured
    if stored is None:
        return "unknown", tuple(said)
    each = stored / GIB / settings.world_size - settings.cpu_offload_gb
    room = min(r.card.total_gib - r.context.before.value for r in ranks)
    said.append(
        msg("its tensors take {each:.1f} GiB on each of {n} ranks at least; {room:.1f} GiB are there",
            each=each, n=settings.world_size, room=room)
    )  # fmt: skip
    return ("oom_weights" if each > room else "unknown"), tuple(said)


def _shown(number: float | None) -> str:
    return "?" if number is None else f"{number:,.4g}"


def _before_kv(settings: Settings, rank: Rank) -> Judged | None:
    total = rank.card.total_gib
    before, weights = rank.context.before.value, max(rank.weights.value, rank.loading_gib)
    if checks_free_memory(settings.version, settings.engine) and rank.card.vendor != "cpu":
        free = total - before
        if free < rank.requested.value:
            text = msg(
                "rank {rank}: {free:.2f} GiB free at start are below utilization {util} x {total:.2f} = {need:.2f} GiB",
                rank=rank.rank,
                free=free,
                util=settings.gpu_memory_utilization,
                total=total,
                need=rank.requested.value,
            )
            return "free_memory_below_utilization", (text,)
    if before + weights > total:
        text = msg(
            "rank {rank}: {weights:.1f} GiB of weights and {before:.1f} of context exceed the card's {total:.1f} GiB",
            rank=rank.rank,
            weights=weights,
            before=before,
            total=total,
        )
        return "oom_weights", (text,)
    if rank.card.vendor == "cpu":
        return _cpu(rank)
    weights = rank.weights.value
    peak = before + rank.context.counted.value + weights + rank.activation.value
    if peak > total:
        text = msg(
            "rank {rank}: the profile run needs {peak:.1f} GiB ({weights:.1f} weights, {activation:.1f} activation) of "
            "{total:.1f} GiB",
            rank=rank.rank,
            peak=peak,
            weights=weights,
            activation=rank.activation.value,
            total=total,
        )
        return "oom_profile", (text,)
    return None


def _cpu(rank: Rank) -> Judged | None:
    """The CPU engine refuses a KV cache larger than what the host has left (0.20 v1/worker/cpu_worker.py)."""
    left = rank.card.total_gib - rank.weights.value - rank.context.counted.value
    if rank.kv_cache.value <= left:
        return None
    text = msg(
        "a KV cache of {kv:.1f} GiB is asked for; {left:.1f} GiB of the host's {total:.1f} are left beside the weights",
        kv=rank.kv_cache.value,
        left=left,
        total=rank.card.total_gib,
    )
    return "free_memory_below_utilization", (text,)


def _kv(settings: Settings, ranks: Sequence[Rank], held: Capacity) -> Judged | None:
    tight = min(ranks, key=lambda r: r.kv_cache.value)
    caches = held.needed_bytes > 0
    if caches and (tight.kv_cache.value <= 0 or held.num_blocks <= 0):
        text = msg(
            "rank {rank}: {left:.2f} GiB are left for the KV cache: {requested:.1f} requested - {weights:.1f} weights "
            "- {activation:.1f} activation - {other:.1f} others",
            rank=tight.rank,
            left=tight.kv_cache.value,
            requested=tight.requested.value,
            weights=tight.weights.value,
            activation=tight.activation.value,
            other=tight.context.counted.value + tight.deducted.value,
        )
        return "no_kv_blocks", (text,)
    if held.enough or not checks_length(settings.version):
        return None
    text = msg(
        "needs {need:.2f} GiB of KV cache for one request of {length:,} tokens; {have:.2f} GiB are left after "
        "{weights:.1f} GiB weights; the longest that fits is {longest:,}",
        need=held.needed_bytes / GIB,
        length=settings.max_model_len,
        have=tight.kv_cache.value,
        weights=tight.weights.value,
        longest=held.longest_len,
    )
    return "kv_too_small_for_max_len", (text,)


def _states(settings: Settings, model: ModelFacts, held: Capacity) -> Judged | None:
    """Whole-model graphs of recurrent layers want a block for every sequence (0.20 to 0.33 config/compilation.py
    `resolve_cudagraph_mode_and_sizes`)."""
    wanted, there = settings.max_num_seqs, held.num_blocks
    recurrent = any(layer.recurrent for layer in model.layers)
    if not recurrent or settings.version < (0, 20) or wanted <= there or not settings.graphs:
        return None
    if not graph_counts(settings, model.layers)[1]:
        return None
    text = msg(
        "{wanted:,} sequences (max_num_seqs) need a block of recurrent state each; {there:,} are there",
        wanted=wanted,
        there=there,
    )
    return "no_kv_blocks", (text,)


def _after_kv(settings: Settings, ranks: Sequence[Rank]) -> Judged:
    tight = min(ranks, key=lambda r: r.headroom.value)
    left = tight.headroom.value
    if left < 0:
        text = msg(
            "rank {rank}: CUDA graphs and the first batch need {short:.2f} GiB more than the KV cache leaves",
            rank=tight.rank,
            short=-left,
        )
        return "oom_cuda_graph", (text,)
    if left < SAFE_HEADROOM_GIB + communication_gib(settings):
        text = msg(
            "rank {rank}: only {left:.2f} GiB of {total:.1f} GiB stay free at the peak",
            rank=tight.rank,
            left=left,
            total=tight.card.total_gib,
        )
        return "unsafe_headroom", (text,)
    return "fits", (msg("{left:.1f} GiB stay free at the peak on the tightest rank", left=left),)


def communication_gib(settings: Settings) -> float:
    """GiB that must stay free for NCCL's memory in the graphs, which no release counts."""
    if not settings.graphs:
        return 0.0
    old = settings.version < (0, 11)
    if (settings.world_size if old else settings.tensor_parallel_size) > CARDS_PER_HOST:
        return NODES_HEADROOM_GIB - SAFE_HEADROOM_GIB
    if not settings.nccl_reduces:
        return 0.0
    return (NCCL_HEADROOM_GIB if old else NCCL_LATER_HEADROOM_GIB) - SAFE_HEADROOM_GIB
