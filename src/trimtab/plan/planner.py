"""From a model, cards and a wish to a launch command that holds, with the memory behind it and a reason for every flag.

First form: it searches the split, the batch and the utilization; the memory model decides what is safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from trimtab.engine.command import LaunchCommand
from trimtab.engine.quantities import wrong_value
from trimtab.errors import UsageError
from trimtab.facts.model import ModelFacts
from trimtab.messages import Message, msg
from trimtab.plan.memory.budget import Budget, budget
from trimtab.plan.memory.card import Card
from trimtab.plan.memory.defaults import resolve
from trimtab.plan.memory.given import Given
from trimtab.plan.memory.verdict import SAFE_HEADROOM_GIB
from trimtab.plan.memory.versions import release
from trimtab.plan.parallel import refusals
from trimtab.plan.reasons import Why, reasons

DEFAULT_CONCURRENCY = 4
"""Requests at once when no wish names a number: the least that verification drives."""
CONTEXTS = (131072, 65536, 32768, 16384, 8192, 4096, 2048)
ONE_HOST = (2, 4, 8)
"""Numbers of cards that one host commonly holds."""
BATCHES = (8192, 4096, 2048, 1024, 512)
"""--max-num-batched-tokens tried, largest first: the activation peak grows with it, the time to a first token falls."""
CPU_BATCH = 2048
"""The largest batch on a CPU: one such step takes seconds there, and blocks every other request for as long."""
HIGHEST_UTILIZATION = 0.97
"""Where the search for a safe utilization starts; it goes down until SAFE_HEADROOM_GIB stay free at the peak."""


class Wish(msgspec.Struct, frozen=True):
    """What the user wants: tokens of context per request and requests at once, each at full context."""

    context: int | None = None
    concurrency: int | None = None


class Alternative(msgspec.Struct, frozen=True):
    """A nearby plan that does fit, when the wish does not."""

    what: Message
    command: LaunchCommand
    budget: Budget


class Plan(msgspec.Struct, frozen=True):
    """The launch, why each flag, and what else would do. `fits` is the budget's word on the wish as a whole."""

    command: LaunchCommand
    env: Mapping[str, str]
    budget: Budget
    wish: Wish
    why: tuple[Why, ...]
    alternatives: tuple[Alternative, ...] = ()

    @property
    def fits(self) -> bool:
        held = self.budget.capacity.max_concurrency >= (self.wish.concurrency or 1)
        return self.budget.verdict == "fits" and held


class Task(msgspec.Struct, frozen=True):
    """What does not change during the search. `pinned` are flags (vLLM's names, underscores) that the user set."""

    model_path: str
    served_name: str
    model: ModelFacts
    cards: tuple[Card, ...]
    version: str
    pinned: Mapping[str, object]
    remote_code: bool = False

    @property
    def on_cpu(self) -> bool:
        return self.cards[0].vendor == "cpu"


def plan(task: Task, wish: Wish) -> Plan:
    """The smallest set of cards that serves the wish; when none does, the nearest try with alternatives.

    UsageError for a wish that makes no sense (zero, negative, beyond the model's positions).
    """
    wish = _with_pinned(task, wish)
    _check(task, wish)
    wanted = replace(wish, concurrency=wish.concurrency or DEFAULT_CONCURRENCY)
    tries = [replace(wanted, context=wish.context)] if wish.context else _default_wishes(task, wanted)
    best: Plan | None = None
    for one in tries:
        for found in _candidates(task, one):
            if found.fits:
                return found
            best = _better(best, found)
    if best is None:
        raise _no_split(task, wish)
    return replace(best, alternatives=tuple(_alternatives(task, best.wish)))


def _with_pinned(task: Task, wish: Wish) -> Wish:
    """The wish with what the user pinned: --max-model-len is the context, --max-num-seqs the concurrency."""
    length, seqs = task.pinned.get("max_model_len"), task.pinned.get("max_num_seqs")
    return Wish(
        length if isinstance(length, int) else wish.context,
        seqs if isinstance(seqs, int) else wish.concurrency,
    )


def _check(task: Task, wish: Wish) -> None:
    for name, value in (("--context", wish.context), ("--concurrency", wish.concurrency)):
        if value is not None and value < 1:
            raise UsageError(msg("{name} is {value}; it must be 1 or more", name=name, value=value))
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


def _default_wishes(task: Task, wish: Wish) -> list[Wish]:
    longest = task.model.max_positions or CONTEXTS[-1]
    lengths = [longest, *(c for c in CONTEXTS if c < longest)] if not task.on_cpu else [min(longest, 8192)]
    return [replace(wish, context=c) for c in lengths]


def _candidates(task: Task, wish: Wish) -> Iterator[Plan]:
    """Plans for one wish, fewest cards first, largest batch first."""
    useful = (wish.context or BATCHES[0]) * (wish.concurrency or 1)
    most = CPU_BATCH if task.on_cpu else BATCHES[0]
    batches = [b for b in BATCHES if (wish.concurrency or 1) <= b <= max(min(useful, most), BATCHES[-1])]
    for tensor, pipeline in splits(task):
        for tokens in batches:
            flags: dict[str, object] = {
                "max_model_len": wish.context,
                "max_num_seqs": wish.concurrency,
                "max_num_batched_tokens": tokens,
            }
            if tensor > 1:
                flags["tensor_parallel_size"] = tensor
            if pipeline > 1:
                flags["pipeline_parallel_size"] = pipeline
            yield _complete(task, wish, flags)


def splits(task: Task) -> list[tuple[int, int]]:
    """(tensor, pipeline) sizes that vLLM takes for this model on these cards: fewest cards first, pipelines last."""
    pinned_tp, pinned_pp = task.pinned.get("tensor_parallel_size"), task.pinned.get("pipeline_parallel_size")
    most = len(task.cards)
    found = []
    for tensor in range(1, most + 1):
        for pipeline in range(1, most // tensor + 1):
            if (pinned_tp not in (None, tensor)) or (pinned_pp not in (None, pipeline)):
                continue
            if not refusals(task.model, tensor, pipeline) and (pinned_tp or _even(task.model, tensor)):
                found.append((tensor, pipeline))
    return sorted(found, key=lambda s: (s[1] > 1, s[0] * s[1], s[1]))


def _even(model: ModelFacts, tensor: int) -> bool:
    """Powers of two, over which KV heads spread evenly: other sizes start on some models and die on their variants."""
    kv = model.kv_heads or 1
    return tensor & (tensor - 1) == 0 and (kv % tensor == 0 or tensor % kv == 0)


def _complete(task: Task, wish: Wish, flags: dict[str, object]) -> Plan:
    """The plan of these flags with a utilization that is safe, and dtype and environment as the cards want them."""
    env: dict[str, str] = {}
    if not task.on_cpu and task.cards[0].capability < 8.0 and task.model.dtype == "bfloat16":
        flags["dtype"] = "half"
    if task.remote_code:
        flags["trust_remote_code"] = True
    flags |= task.pinned
    if task.on_cpu:
        env["VLLM_CPU_KVCACHE_SPACE"] = str(_cpu_space_gib(task, wish, flags))
        found = _budget(task, flags, env)
    else:
        found = _with_safe_utilization(task, flags)
    argv = ["vllm", "serve", task.model_path, "--served-model-name", task.served_name, *to_argv(flags)]
    return Plan(
        command=LaunchCommand.from_argv(argv, env),
        env=env,
        budget=found,
        wish=wish,
        why=reasons(found, flags, env, task.pinned, wish.context or 0, wish.concurrency or 1),
    )


def _with_safe_utilization(task: Task, flags: dict[str, object]) -> Budget:
    """The budget at the highest utilization that leaves SAFE_HEADROOM_GIB free; writes the flag unless it is pinned."""
    if "gpu_memory_utilization" in task.pinned or "kv_cache_memory_bytes" in task.pinned:
        return _budget(task, flags, {})
    utilization = HIGHEST_UTILIZATION
    while True:
        flags["gpu_memory_utilization"] = utilization
        found = _budget(task, flags, {})
        short = SAFE_HEADROOM_GIB - min(r.headroom.value for r in found.ranks)
        free_short = found.verdict == "free_memory_below_utilization"
        if (short <= 0 and not free_short) or utilization <= 0.5:
            return found
        steps = max(1, -int(-100 * max(short, 0.0) // found.tightest.card.total_gib))
        utilization = max(0.5, round(utilization - steps / 100, 2))


def _budget(task: Task, flags: Mapping[str, object], env: Mapping[str, str]) -> Budget:
    settings = resolve(Given(flags, env), release(task.version), task.model, task.cards)
    return budget(settings, task.model, task.cards)


def _cpu_space_gib(task: Task, wish: Wish, flags: Mapping[str, object]) -> int:
    """Whole GiB of KV cache that hold the wish (the variable takes whole numbers)."""
    held = _budget(task, flags, {"VLLM_CPU_KVCACHE_SPACE": "1"})
    per_request = held.capacity.needed_bytes / 2**30
    return max(1, -int(-per_request * (wish.concurrency or 1) // 1))


def _better(best: Plan | None, found: Plan) -> Plan:
    """The try that comes nearest: it starts, and holds more requests."""
    if best is None:
        return found
    order = {"fits": 2, "unsafe_headroom": 1}
    rank = [
        (order.get(p.budget.verdict, 0), p.budget.capacity.max_concurrency, -p.budget.tightest.weights.value)
        for p in (best, found)
    ]
    return found if rank[1] > rank[0] else best


def _alternatives(task: Task, wish: Wish) -> Iterator[Alternative]:
    """The nearest wishes that fit: fewer requests, a shorter context, an fp8 KV cache, more of the same cards."""
    context, concurrency = wish.context or 0, wish.concurrency or 1
    for fewer in range(concurrency - 1, 0, -1):
        found = _first_fit(task, Wish(context, fewer))
        if found:
            yield _alternative(msg("{n} requests at once instead of {wanted}", n=fewer, wanted=concurrency), found)
            break
    for shorter in (c for c in CONTEXTS if c < context):
        found = _first_fit(task, Wish(shorter, concurrency))
        if found:
            yield _alternative(msg("a context of {n:,} instead of {wanted:,}", n=shorter, wanted=context), found)
            break
    if "kv_cache_dtype" not in task.pinned and task.cards[0].capability >= 8.9:
        found = _first_fit(replace(task, pinned={**task.pinned, "kv_cache_dtype": "fp8"}), wish)
        if found:
            yield _alternative(msg("an fp8 KV cache: half the bytes per token, with some loss of accuracy"), found)
    for count in (n for n in ONE_HOST if n > len(task.cards) and not task.on_cpu and len(set(task.cards)) == 1):
        found = _first_fit(replace(task, cards=task.cards[:1] * count), wish)
        if found:
            card = task.cards[0].name
            yield _alternative(msg("{n} x {card} instead of {have}", n=count, card=card, have=len(task.cards)), found)
            break


def _alternative(what: Message, found: Plan) -> Alternative:
    return Alternative(what, found.command, found.budget)


def _first_fit(task: Task, wish: Wish) -> Plan | None:
    return next((p for p in _candidates(task, wish) if p.fits), None)


def _no_split(task: Task, wish: Wish) -> UsageError:
    """Why there was nothing to try."""
    most = CPU_BATCH if task.on_cpu else BATCHES[0]
    if (wish.concurrency or 1) > most:
        return UsageError(
            msg("{n:,} requests at once are more than one step holds: {most:,} tokens", n=wish.concurrency, most=most),
            hint=msg("Ask for at most that many; what comes beyond waits in the queue."),
        )
    tensor, pipeline = (_pinned_size(task, f"{kind}_parallel_size") for kind in ("tensor", "pipeline"))
    why = refusals(task.model, tensor, pipeline)
    if not why and tensor * pipeline > len(task.cards):
        why = (msg("{tensor} x {pipeline} ranks need {need} GPUs; {n} are named",
                   tensor=tensor, pipeline=pipeline, need=tensor * pipeline, n=len(task.cards)),)  # fmt: skip
    return UsageError(
        why[0] if why else msg("no split of the model over {n} GPUs is possible", n=len(task.cards)),
        hint=msg("Name another number of GPUs."),
    )


def _pinned_size(task: Task, name: str) -> int:
    size = task.pinned.get(name, 1)
    if not isinstance(size, int) or size < 1:
        raise wrong_value(name, str(size))
    return size


def to_argv(flags: Mapping[str, object]) -> list[str]:
    """vLLM's names with underscores -> words of the command line; False becomes the `--no-` form, None is left out."""
    words: list[str] = []
    for name, value in flags.items():
        option = name.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", f"{value}"]
    return words
