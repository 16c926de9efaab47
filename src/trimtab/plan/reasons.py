"""One sentence per flag of a plan: why this value, with the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from trimtab.messages import Message, msg
from trimtab.plan.estimate import TOKEN_BOUND_S, Estimate
from trimtab.plan.memory.budget import Budget
from trimtab.plan.safety import reserve
from trimtab.plan.wish import Wish, held


class Why(msgspec.Struct, frozen=True):
    """A flag (or variable) of the plan, its value, the reason, and where that comes from."""

    flag: str
    value: str
    reason: Message
    source: str


def reasons(
    found: Budget,
    flags: Mapping[str, object],
    env: Mapping[str, str],
    pinned: Mapping[str, object],
    wish: Wish,
    told: Estimate,
    with_graphs: Message | None = None,
) -> tuple[Why, ...]:
    """One Why per flag and variable, in the order of the command. `with_graphs`: what the same fails at with them."""
    case = Case(found, wish, told, with_graphs)
    listed = []
    for name, value in flags.items():
        option = f"--{name.replace('_', '-')}"
        if name in pinned:
            listed.append(Why(option, _shown(value), msg("set by you"), "user"))
        elif name in _REASONS:
            reason, source = _REASONS[name](case)
            listed.append(Why(option, _shown(value), reason, source))
    for name, text in env.items():
        listed.append(Why(name, text, _cpu_space(case), "memory model"))
    return tuple(listed)


def name_reason(name: str) -> Why:
    """Of --served-model-name, which every plan has."""
    text = msg("what clients send as `model`; without it they would have to send the whole path or id")
    return Why("--served-model-name", name, text, "vllm/config/model.py")


def _shown(value: object) -> str:
    """As on the command line: a switch has no value."""
    return "" if value is True else str(value)


_Told = tuple[Message, str]


class Case(msgspec.Struct, frozen=True):
    """What a reason is made of."""

    found: Budget
    wish: Wish
    told: Estimate
    with_graphs: Message | None = None


def _max_model_len(case: Case) -> _Told:
    text = msg(
        "one request may hold {context:,} tokens; a longer prompt is refused with HTTP 400; the most that the model "
        "and this KV cache allow is {longest:,}",
        context=case.found.settings.max_model_len,
        longest=case.found.capacity.longest_len,
    )
    return text, "memory model"


def _max_num_seqs(case: Case) -> _Told:
    ranks = case.found.settings.data_parallel_size
    size = case.wish.request_tokens
    if ranks > 1:
        text = msg(
            "on each of {ranks} data ranks, so that {n} requests of {size:,} tokens run at once; the KV caches hold "
            "{held:.1f} of them",
            ranks=ranks,
            n=case.wish.concurrency,
            size=size,
            held=held(case.found, case.wish),
        )
    else:
        text = msg(
            "{n} requests at once of {size:,} tokens each; the KV cache holds {held:.1f} of them",
            n=case.wish.concurrency,
            size=size,
            held=held(case.found, case.wish),
        )
    return text, "memory model"


def _batched_tokens(case: Case) -> _Told:
    stalled = case.told.stall_s
    if case.wish.prefer == "latency" and stalled is not None:
        text = msg(
            "one prompt of {context:,} tokens is prefilled in pieces of this size; each holds the others up for "
            "{low:,.0f} to {high:,.0f} ms (estimate; {bound:.0f} ms are the bound)",
            context=case.found.settings.max_model_len,
            low=stalled.low * 1000,
            high=stalled.high * 1000,
            bound=TOKEN_BOUND_S * 1000,
        )
        return text, "roofline"
    if case.wish.prefer == "latency":
        text = msg(
            "the smallest piece tried: how long one of a long prompt holds the others up cannot be estimated, no peak "
            "of {card} has a source",
            card=case.found.tightest.card.name,
        )
        return text, "facts"
    text = msg(
        "the largest batch whose activation peak ({peak:.2f} GiB per card) leaves the KV cache enough; a long prompt "
        "is prefilled in pieces of this size, so that it blocks nobody for longer",
        peak=case.found.tightest.activation.value,
    )
    return text, "memory model"


def _tensor_parallel(case: Case) -> _Told:
    found, tensor = case.found, case.found.settings.tensor_parallel_size
    text = msg(
        "{weights:.1f} GiB of weights over {n} cards are {each:.1f} GiB each; {heads} attention heads divide by {n}",
        weights=found.model.stored_bytes / 2**30,
        n=tensor,
        each=found.tightest.weights.value,
        heads=found.model.heads,
    )
    return text, "config.json"


def _pipeline_parallel(case: Case) -> _Told:
    layers, n = case.found.model.num_layers, case.found.settings.pipeline_parallel_size
    text = msg("{layers} layers in {n} stages, since no tensor-parallel size alone fits", layers=layers, n=n)
    return text, "config.json"


def _data_parallel(case: Case) -> _Told:
    ranks = case.found.settings.data_parallel_size
    if any(x.attention is not None and x.attention.kv_lora_rank is not None for x in case.found.model.layers):
        text = msg(
            "{n} caches of their own: MLA's cache cannot be split, tensor ranks would hold it {n} times", n=ranks
        )
        return text, "vllm/config/parallel.py"
    return msg("{n} replicas of attention, each with its own cache and batch", n=ranks), "vllm/config/parallel.py"


def _expert_parallel(case: Case) -> _Told:
    moe = next(x.moe for x in case.found.model.layers if x.moe)
    ranks = case.found.settings.tensor_parallel_size * case.found.settings.data_parallel_size
    text = msg("{experts} experts by count, {each} on each of {n} ranks", experts=moe.experts, n=ranks,
               each=-(-moe.experts // ranks))  # fmt: skip
    return text, "config.json"


def _chunked_prefill(case: Case) -> _Told:
    text = msg("the V0 engine of {version} takes whole prompts without it", version=str(case.found.settings.version))
    return text, "vllm/config.py"


def _eager(case: Case) -> _Told:
    if case.with_graphs is None:
        return msg("without CUDA graphs: with them this would not fit, and each token would be faster"), "memory model"
    text = msg("without CUDA graphs, with which each token would be faster; with them: {why}", why=case.with_graphs)
    return text, "memory model"


def _utilization(case: Case) -> _Told:
    found = case.found
    tight = found.tightest
    kept = reserve(found, tight)
    text = msg(
        "of {total:.2f} GiB, {before:.2f} of them held before vLLM looks, the most that leaves {headroom:.2f} GiB "
        "free at the peak; needed are {need:.2f}: {penalties:.2f} sampling with penalties, {graphs:.2f} graphs, "
        "{fragments:.2f} fragmentation, {error:.2f} the model's error",
        total=tight.card.total_gib,
        before=tight.context.before.value,
        headroom=min(r.headroom.value for r in found.ranks),
        need=kept.total,
        penalties=kept.penalties,
        graphs=kept.graphs,
        fragments=kept.fragmentation,
        error=kept.model_error,
    )
    if kept.communication:
        text = msg("{text}, {room:.2f} NCCL in the graphs, which vLLM does not count", text=text,
                   room=kept.communication)  # fmt: skip
    if kept.host:
        text = msg("{text}, {host:.2f} the system and its processes, which share this memory", text=text,
                   host=kept.host)  # fmt: skip
    return text, "memory model"


def _dtype(case: Case) -> _Told:
    card = case.found.cards[0]
    text = msg("{card} has compute capability {have:.1f}; bfloat16 needs 8.0", card=card.name, have=card.capability)
    return text, "vllm/platforms/cuda.py"


def _remote_code(case: Case) -> _Told:
    text = msg(
        "the checkpoint's config, tokenizer or model is Python of its own: read it first, and pin it by --revision"
    )
    return text, "config.json"


def _cpu_space(case: Case) -> Message:
    return msg(
        "GiB of KV cache in the host's memory: {n} requests of {context:,} tokens need {need:.2f}",
        n=case.wish.concurrency,
        context=case.wish.context or 0,
        need=(case.wish.concurrency or 1) * case.found.capacity.needed_bytes / 2**30,
    )


_REASONS: dict[str, Callable[[Case], _Told]] = {
    "max_model_len": _max_model_len,
    "max_num_seqs": _max_num_seqs,
    "max_num_batched_tokens": _batched_tokens,
    "tensor_parallel_size": _tensor_parallel,
    "pipeline_parallel_size": _pipeline_parallel,
    "data_parallel_size": _data_parallel,
    "enable_expert_parallel": _expert_parallel,
    "enable_chunked_prefill": _chunked_prefill,
    "enforce_eager": _eager,
    "gpu_memory_utilization": _utilization,
    "dtype": _dtype,
    "trust_remote_code": _remote_code,
}
