"""A memory budget as a table with a bar of the card, as its derivation, and as JSON (schema `trimtab.budget/1`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from trimtab.facts.derived import Derived
from trimtab.messages import Message, msg
from trimtab.plan.memory import Budget, Rank
from trimtab.plan.memory.versions import tokens_are_concurrency

SCHEMA = "trimtab.budget/1"
WIDTH = 72
_FREE = "·"


def as_json(report: Budget, lang: str) -> str:
    """The report as JSON text."""
    return json.dumps(as_value(report, lang), indent=2, ensure_ascii=False)


def as_value(report: Budget, lang: str) -> dict[str, Any]:
    """The report as data; sentences in `lang`, everything else the same in all languages. Unknown numbers are null."""
    s, held = report.settings, report.capacity
    known = report.known
    return {
        "schema": SCHEMA,
        "model": report.model.architecture,
        "vllm": str(s.version),
        "gpu": {
            "name": report.cards[0].name,
            "count": len(report.cards),
            "total_gib": round(report.tightest.card.total_gib, 2),
        },
        "per_gpu": _terms(report.tightest, known),
        "ranks": [
            {"rank": r.rank, "gpu": r.card.name, "total_gib": round(r.card.total_gib, 2), **_terms(r, known)}
            for r in report.ranks
        ],
        "kv_cache_tokens": held.kv_cache_tokens if known else None,
        "num_gpu_blocks": held.num_blocks if known else None,
        "block_size": held.block_size,
        "max_concurrency": round(held.max_concurrency, 2) if known else None,
        "max_model_len": s.max_model_len,
        "max_num_seqs": s.max_num_seqs,
        "max_num_batched_tokens": s.max_num_batched_tokens,
        "longest_len": held.longest_len if known else None,
        "verdict": report.verdict,
        "reasons": [r.text(lang) for r in report.reasons],
        "assumptions": [a.text(lang) for a in report.assumptions],
    }


def as_text(report: Budget, lang: str, *, explain: bool = False) -> str:
    """The report for a person: what it is about, the card's memory as a bar, the numbers, the verdict."""
    lines = [_title(report).text(lang), ""]
    if report.known:
        lines += _bar(report, lang)
        lines += _numbers(report, lang)
    lines += ["", f"{msg('verdict').text(lang)}: {verdict_words(report.verdict).text(lang)} ({report.verdict})"]
    lines += [f"  {r.text(lang)}" for r in report.reasons]
    if report.assumptions:
        lines += ["", msg("assumed:").text(lang), *(f"  {a.text(lang)}" for a in report.assumptions)]
    if explain and report.known:
        lines += ["", msg("derivation (rank {rank}):", rank=report.tightest.rank).text(lang), *_derivation(report)]
    return "\n".join(lines)


def verdict_words(verdict: str) -> Message:
    """A verdict in words."""
    return {
        "fits": msg("it fits"),
        "unsafe_headroom": msg("it starts, with too little left to be safe"),
        "kv_too_small_for_max_len": msg("the KV cache is too small for one request of the maximum length"),
        "no_kv_blocks": msg("nothing is left for the KV cache"),
        "oom_weights": msg("out of memory while the weights load"),
        "oom_profile": msg("out of memory in the profile run"),
        "oom_cuda_graph": msg("out of memory while CUDA graphs are captured, or at the first batch"),
        "free_memory_below_utilization": msg("less memory is free than --gpu-memory-utilization asks for"),
    }.get(verdict, msg("not known"))


def _terms(rank: Rank, known: bool) -> dict[str, float | None]:
    found = {
        "weights_gib": rank.weights.value,
        "non_torch_gib": rank.context.counted.value,
        "activation_peak_gib": rank.activation.value,
        "cuda_graph_gib": rank.graphs.value,
        "kv_cache_gib": rank.kv_cache.value,
        "headroom_gib": rank.headroom.value,
    }
    return {k: round(v, 3) if known else None for k, v in found.items()}


def _title(report: Budget) -> Message:
    return msg(
        "{model} with vLLM {version} on {count} x {gpu} ({total:.2f} GiB each)",
        model=report.model.architecture,
        version=report.settings.version,
        count=len(report.ranks),
        gpu=report.tightest.card.name,
        total=report.tightest.card.total_gib,
    )


MARKS = ("█", "▓", "▒", "#", "=", _FREE)
"""Weights, context and libraries, activation peak, graphs, KV cache, free."""


def _parts(rank: Rank) -> tuple[tuple[Message, str, float], ...]:
    outside = rank.context.before.value + rank.context.counted.value
    return (
        (msg("weights"), MARKS[0], rank.weights.value),
        (msg("CUDA context, libraries"), MARKS[1], outside),
        (msg("activation peak"), MARKS[2], rank.activation.value),
        (msg("CUDA graphs"), MARKS[3], rank.graphs.value),
        (msg("KV cache"), MARKS[4], rank.kv_cache.value),
        (msg("free at the peak"), MARKS[5], rank.headroom.value),
    )


def _bar(report: Budget, lang: str) -> list[str]:
    """The tightest card as one line, and what each mark means with its size."""
    lines = drawn(report, lang)
    for name, mark, gib in _parts(report.tightest):
        lines.append(f"  {mark} {gib:9.2f} GiB  {name.text(lang)}")
    return lines


def drawn(report: Budget, lang: str) -> list[str]:
    """The tightest card as one line of MARKS; a second line where it holds less than is needed."""
    rank = report.tightest
    total = max(rank.card.total_gib, sum(max(0.0, gib) for _, _, gib in _parts(rank)[:-1]))
    cells = ""
    reached = 0.0
    for _, mark, gib in _parts(rank)[:-1]:
        reached += max(0.0, gib)
        cells += mark * (round(WIDTH * reached / total) - len(cells))
    end = min(WIDTH, round(WIDTH * rank.card.total_gib / total))
    drawn = cells[:end].ljust(end, _FREE) + "]" + cells[end:]
    lines = [f"[{drawn}"]
    if rank.card.total_gib < total:
        lines.append(msg("beyond ]: more than the card has").text(lang))
    return lines


def _numbers(report: Budget, lang: str) -> list[str]:
    s, held = report.settings, report.capacity
    rows = (
        (msg("KV cache, all ranks together"), f"{held.kv_cache_tokens:,} tokens"),
        (msg("blocks of tokens"), f"{held.num_blocks:,} x {held.block_size}"),
        (msg("requests of {n:,} tokens at once", n=s.max_model_len), f"{held.max_concurrency:.2f}"),
        (msg("longest request that fits"), f"{held.longest_len:,} tokens"),
        (msg("of host memory pinned"), f"{report.host_memory.value:.1f} GiB"),
        (msg("max_num_seqs, max_num_batched_tokens"), f"{s.max_num_seqs:,}, {s.max_num_batched_tokens:,}"),
    )
    return ["", *(f"  {value:>24}  {name.text(lang)}" for name, value in rows)]


def _derivation(report: Budget) -> Iterator[str]:
    rank = report.tightest
    named: tuple[tuple[str, Derived[float]], ...] = (
        ("requested", rank.requested),
        ("weights", rank.weights),
        ("context before the snapshot", rank.context.before),
        ("non-torch counted", rank.context.counted),
        ("activation peak", rank.activation),
        ("CUDA graphs", rank.graphs),
        ("CUDA graphs deducted", rank.deducted),
        ("KV cache", rank.kv_cache),
        ("headroom", rank.headroom),
        ("host memory pinned", report.host_memory),
    )
    for name, term in named:
        yield f"  {name}: {term.value:.3f} {term.unit} = {term.formula} [{term.source}]"
        if term.inputs:
            yield "    " + ", ".join(f"{k} {v}" for k, v in term.inputs.items())
        if term.note:
            yield f"    {term.note}"
    yield from _kv_derivation(report)


def _kv_derivation(report: Budget) -> Iterator[str]:
    for group in report.layout.groups:
        c = group.cache
        reach = f", {c.reach} tokens of reach" if c.reach else ""
        yield f"  KV group: {len(group.layers)} layers {c.kind}, {c.block_size} x {c.token_bytes:,.0f} B a block{reach}"
    yield f"  block over all layers of the tightest stage: {report.layout.block_bytes(report.tightest.stage):,} B"
    if report.layout.padding_layers:
        yield f"  padding layers: {report.layout.padding_layers}"
    if report.layout.state_padding:
        yield f"  state page padded by {report.layout.state_padding:.2%}"
    yield from _capacity_derivation(report)


def _capacity_derivation(report: Budget) -> Iterator[str]:
    """What the cache holds, from its bytes; vLLM v1/core/kv_cache_utils.py."""
    settings, held, layout = report.settings, report.capacity, report.layout
    if not layout.groups:
        return
    asked = settings.num_gpu_blocks_override is not None
    blocks = "--num-gpu-blocks-override" if asked else "KV cache / block, of the rank that holds fewest"
    request = layout.request_blocks(settings.max_model_len)
    yield f"  blocks: {held.num_blocks:,} = {blocks}"
    length = f"{settings.max_model_len:,} tokens"
    yield f"  at once: {held.max_concurrency:.2f} = blocks / {request:,} of a request of {length}"
    if settings.engine == "V1" and tokens_are_concurrency(settings.version):
        tokens = "requests at once x max_model_len"
    else:
        tokens = f"blocks // {len(layout.groups)} groups x tokens a block"
    yield f"  tokens: {held.kv_cache_tokens:,} = {tokens}"
    yield f"  needed: {held.needed_bytes:,} B for one request of {length}, as this release counts"
    yield f"  longest: {held.longest_len:,} tokens = the longest whose need the cache holds, up to the model's context"
