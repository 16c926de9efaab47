"""One sentence per flag of a plan: why this value, with the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from trimtab.messages import Message, msg
from trimtab.plan.memory.budget import Budget


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
    context: int,
    concurrency: int,
) -> tuple[Why, ...]:
    """One Why per flag and variable, in the order of the command."""
    told = []
    for name, value in flags.items():
        option = f"--{name.replace('_', '-')}"
        if name in pinned:
            told.append(Why(option, _shown(value), msg("set by you"), "user"))
        elif name in _REASONS:
            reason, source = _REASONS[name](found, context, concurrency)
            told.append(Why(option, _shown(value), reason, source))
    for name, text in env.items():
        told.append(Why(name, text, _cpu_space(found, context, concurrency), "memory model"))
    return tuple(told)


def _shown(value: object) -> str:
    """As on the command line: a switch has no value."""
    return "" if value is True else str(value)


_Told = tuple[Message, str]


def _max_model_len(found: Budget, context: int, concurrency: int) -> _Told:
    longest = found.capacity.longest_len
    text = msg(
        "one request may hold {context:,} tokens; a longer prompt is refused with HTTP 400; the most that the model "
        "and this KV cache allow is {longest:,}",
        context=context,
        longest=longest,
    )
    return text, "memory model"


def _max_num_seqs(found: Budget, context: int, concurrency: int) -> _Told:
    text = msg(
        "{n} requests at once, each at full context; the KV cache holds {held:.1f} of them",
        n=concurrency,
        held=found.capacity.max_concurrency,
    )
    return text, "memory model"


def _batched_tokens(found: Budget, context: int, concurrency: int) -> _Told:
    text = msg(
        "the largest batch whose activation peak ({peak:.2f} GiB per card) leaves the KV cache enough; a long prompt "
        "is prefilled in pieces of this size, so that it blocks nobody for longer",
        peak=found.tightest.activation.value,
    )
    return text, "memory model"


def _tensor_parallel(found: Budget, context: int, concurrency: int) -> _Told:
    tensor = found.settings.tensor_parallel_size
    text = msg(
        "{weights:.1f} GiB of weights over {n} cards are {each:.1f} GiB each; {heads} attention heads divide by {n}",
        weights=found.model.stored_bytes / 2**30,
        n=tensor,
        each=found.tightest.weights.value,
        heads=found.model.heads,
    )
    return text, "config.json"


def _pipeline_parallel(found: Budget, context: int, concurrency: int) -> _Told:
    stages = found.settings.pipeline_parallel_size
    text = msg(
        "{layers} layers in {n} stages, since no tensor-parallel size alone fits",
        layers=found.model.num_layers,
        n=stages,
    )
    return text, "config.json"


def _utilization(found: Budget, context: int, concurrency: int) -> _Told:
    tight = found.tightest
    text = msg(
        "of {total:.2f} GiB usable, the most that leaves {headroom:.2f} GiB free at the peak for graphs and sampler",
        total=tight.card.total_gib,
        headroom=min(r.headroom.value for r in found.ranks),
    )
    return text, "memory model"


def _dtype(found: Budget, context: int, concurrency: int) -> _Told:
    card = found.cards[0]
    text = msg("{card} has compute capability {have:.1f}; bfloat16 needs 8.0", card=card.name, have=card.capability)
    return text, "vllm/platforms/cuda.py"


def _remote_code(found: Budget, context: int, concurrency: int) -> _Told:
    return msg("the checkpoint brings its own code (auto_map) and this vLLM does not know the model"), "config.json"


def _cpu_space(found: Budget, context: int, concurrency: int) -> Message:
    return msg(
        "GiB of KV cache in the host's memory: {n} requests of {context:,} tokens need {need:.2f}",
        n=concurrency,
        context=context,
        need=concurrency * found.capacity.needed_bytes / 2**30,
    )


_REASONS: dict[str, Callable[[Budget, int, int], _Told]] = {
    "max_model_len": _max_model_len,
    "max_num_seqs": _max_num_seqs,
    "max_num_batched_tokens": _batched_tokens,
    "tensor_parallel_size": _tensor_parallel,
    "pipeline_parallel_size": _pipeline_parallel,
    "gpu_memory_utilization": _utilization,
    "dtype": _dtype,
    "trust_remote_code": _remote_code,
}
