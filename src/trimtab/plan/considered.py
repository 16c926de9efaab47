"""Flags that could be in a plan and are not: what each would do here, in numbers, and why it stays out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from trimtab.engine.flags import FlagTable
from trimtab.messages import Message, msg
from trimtab.plan.memory.allocator import GIB
from trimtab.plan.memory.versions import fits_length, hybrid_prefix_caching, release
from trimtab.plan.outcome import Lost
from trimtab.plan.search import Try, budget_of
from trimtab.plan.variants import has_fp8_cache, variants
from trimtab.plan.wish import Task, held

_Told = tuple[Message, str]


class Case(msgspec.Struct, frozen=True):
    """A plan that fits, and what it is made for."""

    task: Task
    found: Try

    def holds(self, **flags: object) -> float:
        """Requests at once with these flags beside the plan's own."""
        other = budget_of(self.task, {**self.found.flags, **flags}, self.found.env)
        return held(other, self.found.wish)


def considered(task: Task, found: Try) -> Iterator[Lost]:
    """One Lost for each flag of this vLLM that is not in the command, and one for the quantised checkpoints."""
    case = Case(task, found)
    table = FlagTable.for_version(task.version)
    for name, tell in _FLAGS.items():
        flag = f"--{name.replace('_', '-')}"
        if name in found.flags or table.find(flag) is None:
            continue
        told = tell(case)
        if told is not None:
            yield Lost(flag, *told)
    if fits_length(release(task.version)) and "max_model_len" not in task.pinned:
        yield Lost("--max-model-len auto", _length(case), "vllm/v1/core/kv_cache_utils.py")
    if "kv_cache_dtype" not in found.flags:
        yield from _fp8(case)
    yield from _variants(case)


def _prefix_caching(case: Case) -> _Told | None:
    settings, source = case.found.budget.settings, "vllm/engine/arg_utils.py"
    if not case.found.budget.layout.groups:
        return msg("does nothing: this model keeps no cache"), source
    if settings.enable_prefix_caching:
        return msg("on by itself: what prompts begin with alike is computed once, and kept in free blocks"), source
    if any(x.recurrent for x in case.task.model.layers) and not hybrid_prefix_caching(settings.version):
        text = msg(
            "off by itself for models with recurrent layers before 0.28: their state would be kept once per block"
        )
        return text, "vllm/config/model.py"
    return msg("off by itself on the V0 engine; worth it where prompts begin alike"), source


def _kv_cache_memory_bytes(case: Case) -> _Told | None:
    if case.task.on_cpu:
        return None
    text = msg(
        "{size:,} bytes would be this cache; it takes the place of what vLLM measures, so that a wrong guess shows at "
        "the first large batch. It helps where other processes come and go on the card",
        size=int(case.found.budget.tightest.kv_cache.value * GIB),
    )
    return text, "vllm/v1/worker/gpu_worker.py"


def _performance_mode(case: Case) -> _Told | None:
    if case.found.wish.prefer == "latency":
        text = msg(
            "interactivity captures a graph for each size up to 32 instead of 1, 2, 4, 8, 16, 24 and 32: at most {n} "
            "rows of padding less; the weights, which take the time, are read once either way",
            n=7,
        )
    else:
        text = msg(
            "throughput doubles vLLM's defaults of --max-num-seqs and --max-num-batched-tokens; the plan sets both"
        )
    return text, "vllm/engine/arg_utils.py, vllm/config/vllm.py"


def _cpu_offload(case: Case) -> _Told | None:
    if case.task.on_cpu or case.task.cards[0].unified:
        return None
    text = msg(
        "not needed: {weights:.1f} GiB of weights a card leave {kv:.1f} for the cache; what is offloaded is read over "
        "PCIe at every step",
        weights=case.found.budget.tightest.weights.value,
        kv=case.found.budget.tightest.kv_cache.value,
    )
    return text, "vllm/config/offload.py"


def _kv_offloading(case: Case) -> _Told | None:
    if case.task.on_cpu:
        return None
    text = msg(
        "makes room for no more requests at once: one that runs has its whole cache on the card. It keeps prefixes in "
        "host memory, beyond the {tokens:,} tokens of the card, for conversations that come back",
        tokens=case.found.budget.capacity.kv_cache_tokens,
    )
    return text, "docs/features/kv_offloading_usage.md"


def _eager(case: Case) -> _Told | None:
    if case.task.on_cpu:
        return None
    text = msg(
        "would save {graphs:.2f} GiB of CUDA graphs, and every step would wait for its kernels to be launched singly",
        graphs=case.found.budget.tightest.graphs.value,
    )
    return text, "memory model"


def _length(case: Case) -> Message:
    return msg(
        "would be {longest:,} with this cache, and less where less is free at the start; a plan names a length that "
        "clients can count on",
        longest=case.found.budget.capacity.longest_len,
    )


def _fp8(case: Case) -> Iterator[Lost]:
    if has_fp8_cache(case.task) and case.found.budget.layout.groups:
        text = msg(
            "would hold {more:.1f} requests instead of {now:.1f}; costs accuracy, and is not needed",
            more=case.holds(kv_cache_dtype="fp8"),
            now=held(case.found.budget, case.found.wish),
        )
        yield Lost("--kv-cache-dtype fp8", text)


def _variants(case: Case) -> Iterator[Lost]:
    sizes = {other.model_path: other.model.stored_bytes / GIB for _, other in variants(case.task)}
    if sizes:
        text = msg(
            "{after} GiB of weights instead of {before:.1f}; they cost accuracy, so that the choice is yours; look "
            "whether they are published",
            after=" / ".join(f"{gib:.1f}" for gib in sizes.values()),
            before=case.task.model.stored_bytes / GIB,
        )
        yield Lost(", ".join(sizes), text, "catalogue")


_FLAGS: dict[str, Callable[[Case], _Told | None]] = {
    "enforce_eager": _eager,
    "enable_prefix_caching": _prefix_caching,
    "kv_cache_memory_bytes": _kv_cache_memory_bytes,
    "performance_mode": _performance_mode,
    "cpu_offload_gb": _cpu_offload,
    "kv_offloading_size": _kv_offloading,
}
