"""The search: every legal split with every batch, with graphs and without, judged by the memory model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from trimtab.engine.command import LaunchCommand
from trimtab.engine.flags import FlagTable
from trimtab.engine.supported import OWN_TYPES
from trimtab.messages import Message, msg
from trimtab.plan.dtypes import dtype_needed
from trimtab.plan.estimate import TOKEN_BOUND_S, Estimate, estimate
from trimtab.plan.memory.allocator import GIB
from trimtab.plan.memory.budget import Budget, budget
from trimtab.plan.memory.defaults import resolve
from trimtab.plan.memory.given import Given
from trimtab.plan.memory.launch import given_of
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import release
from trimtab.plan.outcome import Lost
from trimtab.plan.safety import at_safe_utilization
from trimtab.plan.splits import Split, splits
from trimtab.plan.unsupported import unsupported
from trimtab.plan.wish import Task, Wish, held

BATCHES = (8192, 4096, 2048, 1024, 512)
"""--max-num-batched-tokens tried, largest first: the activation peak grows with it, the time to a first token falls."""
CPU_BATCH = 2048
"""The largest batch on a CPU: one such step takes seconds there, and blocks every other request for as long."""


class Try(msgspec.Struct, frozen=True):
    """One launch that was judged."""

    split: Split
    flags: Mapping[str, object]
    env: Mapping[str, str]
    budget: Budget
    wish: Wish

    @property
    def fits(self) -> bool:
        return self.budget.verdict == "fits" and held(self.budget, self.wish) >= (self.wish.concurrency or 1)

    @property
    def estimate(self) -> Estimate:
        wish = self.wish
        return estimate(self.budget, wish.concurrency or 1, wish.input_tokens, wish.output_tokens)


class Space(msgspec.Struct, frozen=True):
    """What stays the same over one search."""

    task: Task
    wish: Wish
    chunked: Mapping[str, object]
    """The flag that lets this engine cut prompts into pieces; nothing where it needs none, or cannot."""
    whole_prompts: bool
    """Whether a batch takes whole prompts only."""


class Searched(msgspec.Struct, frozen=True):
    """The best that fits, else the nearest (None: no legal split); and what lost against it."""

    best: Try | None
    nearest: Try | None
    lost: tuple[Lost, ...]


def search(task: Task, wish: Wish, too_large: dict[Split, Try] | None = None) -> Searched:
    """The plan of one wish. Balanced: fewest cards. Latency and throughput: the best of each split, by the estimate.

    `too_large`: splits that hold not even the weights, known from other wishes; what is found is added.
    """
    too_large = {} if too_large is None else too_large
    fitting: list[Try] = []
    failed: list[Try] = []
    nearest: Try | None = None
    space = _space(task, wish)
    tried = splits(task, wish)
    for eager in _modes(task):
        for split in tried:
            if (eager and split in too_large) or (fitting and _needless(split, fitting[0].split)):
                continue
            found = too_large.get(split) or _of_split(space, split, eager=eager)
            if found is None:
                continue
            if not found.fits:
                nearest = found if nearest is None else max(nearest, found, key=_nearness)
                if found.budget.verdict == "oom_weights":
                    too_large[split] = found
                if eager is not True:
                    failed.append(found)
                continue
            fitting.append(found)
            if wish.prefer == "balanced":
                return Searched(found, nearest, _lost(failed))
        if fitting:
            break
    if not fitting:
        return Searched(None, nearest, _lost(failed))
    best = min(fitting, key=lambda one: _score(one, wish))
    beaten = tuple(Lost(one.split.text, _slower(one, best, wish)) for one in fitting if one is not best)
    return Searched(best, nearest, (*beaten, *_lost(failed)))


def _lost(failed: Sequence[Try]) -> tuple[Lost, ...]:
    """What came nearest first."""
    return tuple(Lost(one.split.text, _why_not(one)) for one in sorted(failed, key=_nearness, reverse=True))


def _needless(split: Split, first: Split) -> bool:
    """More pipeline stages or machines than the first that fits: what they send each other is not estimated."""
    return split.pipeline > first.pipeline or (split.crosses_machines and not first.crosses_machines)


def first_fit(task: Task, wish: Wish, too_large: dict[Split, Try] | None = None) -> Try | None:
    """The same search, of which only what fits counts, on cards that this vLLM runs on."""
    if unsupported(task) is not None or not _may_hold(task, len(task.cards)):
        return None
    return search(task, wish, too_large).best


def _may_hold(task: Task, cards: int) -> bool:
    """Whether so many cards hold the weights when each byte is held once and nothing else is."""
    hosted = task.pinned.get("cpu_offload_gb", 0)
    each = task.cards[0].total_gib + (hosted if isinstance(hosted, int | float) else 0)
    return task.model.stored_bytes <= cards * each * GIB


def _modes(task: Task) -> Sequence[bool | None]:
    """With CUDA graphs, then without; None where the user or the device has settled it."""
    return (None,) if task.on_cpu or "enforce_eager" in task.pinned else (None, True)


def _space(task: Task, wish: Wish) -> Space:
    settings = resolve(Given({}), release(task.version), task.model, task.cards)
    chunked = _chunked(task, settings)
    flags = {"max_model_len": wish.context, **chunked, **task.pinned}
    started = resolve(Given(flags), release(task.version), task.model, task.cards)
    whole = started.engine == "V0" and not started.enable_chunked_prefill  # it refuses a batch below the context
    return Space(task, wish, chunked, whole)


def _chunked(task: Task, settings: Settings) -> dict[str, object]:
    """V1 cuts prompts by itself; V0 only when told, and not for windows, MLA or models that see (0.6 config.py)."""
    attention = [x.attention for x in task.model.layers if x.attention is not None]
    plain = bool(attention) and not task.model.towers and not task.has_latent_cache
    plain = plain and all(a.window is None for a in attention)
    known = FlagTable.for_version(task.version).find("--enable-chunked-prefill") is not None
    if settings.engine == "V1" or not plain or not known or "enable_chunked_prefill" in task.pinned:
        return {}
    return {"enable_chunked_prefill": True}


def _of_split(space: Space, split: Split, *, eager: bool | None) -> Try | None:
    """The largest batch that fits, and that keeps the bound where latency is preferred; else the smallest batch's try.

    The smallest is judged first: what does not hold with its activation peak holds with none.
    """
    batches = _batches(space, split)
    if not batches:
        return None
    least = _judged(space, split, batches[-1], eager=eager)
    if not least.fits:
        return least
    for tokens in batches[:-1]:
        found = _judged(space, split, tokens, eager=eager)
        if found.fits and (space.wish.prefer != "latency" or _keeps_bound(found)):
            return found
    return least


def _batches(space: Space, split: Split) -> list[int]:
    task, wish = space.task, space.wish
    asked = task.pinned.get("max_num_batched_tokens")
    if isinstance(asked, int):
        return [asked]
    each = -(-(wish.concurrency or 1) // split.data)
    useful = (wish.context or BATCHES[0]) * each
    most = CPU_BATCH if task.on_cpu else BATCHES[0]
    found = [b for b in BATCHES if each <= b <= max(min(useful, most), BATCHES[-1])]
    if space.whole_prompts:
        found = sorted({max(b, wish.context or 0) for b in found}, reverse=True)
    return found


def _judged(space: Space, split: Split, tokens: int, *, eager: bool | None) -> Try:
    """One launch with a utilization that is safe, and dtype and environment as the cards want them."""
    task, wish = space.task, space.wish
    flags: dict[str, object] = {
        "max_model_len": wish.context,
        "max_num_seqs": -(-(wish.concurrency or 1) // split.data),
        "max_num_batched_tokens": tokens,
        **split.flags,
        **space.chunked,
    }
    if eager:
        flags["enforce_eager"] = True
    dtype = None if task.on_cpu else dtype_needed(task.model, task.cards[0].capability)
    if dtype is not None:
        flags["dtype"] = dtype
    if task.remote_code or task.model.model_type in OWN_TYPES:
        flags["trust_remote_code"] = True
    flags |= task.pinned
    env: dict[str, str] = {}
    if task.on_cpu:
        env["VLLM_CPU_KVCACHE_SPACE"] = str(_cpu_space_gib(task, wish, flags))
        return Try(split, flags, env, budget_of(task, flags, env), wish)
    if "gpu_memory_utilization" in task.pinned or "kv_cache_memory_bytes" in task.pinned:
        return Try(split, flags, env, budget_of(task, flags, env), wish)
    found = at_safe_utilization(lambda share: budget_of(task, {**flags, "gpu_memory_utilization": share}, env))
    flags["gpu_memory_utilization"] = found.settings.gpu_memory_utilization
    return Try(split, flags, env, found, wish)


def budget_of(task: Task, flags: Mapping[str, object], env: Mapping[str, str]) -> Budget:
    """The memory model's word on these flags."""
    settings = resolve(Given(flags, env), release(task.version), task.model, task.cards)
    return budget(settings, task.model, task.cards)


def typed(pinned: Mapping[str, object]) -> dict[str, object]:
    """Pinned flags as the memory model takes them: "8k" as 8,000, "auto" as -1. UsageError for what is no number."""
    words = ["vllm", "serve", "m", *to_argv(pinned)]
    known = given_of(LaunchCommand.from_argv(words)).flags
    return {name: known.get(name, value) for name, value in pinned.items()}


def command_of(task: Task, found: Try) -> LaunchCommand:
    """The words of a try."""
    words = [
        "vllm",
        "serve",
        task.model_path,
        "--served-model-name",
        task.served_name,
        *task.aliases,
        *to_argv(found.flags),
    ]
    return LaunchCommand.from_argv(words, found.env)


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
            words += [f"--{option}", "auto" if (name, value) == ("max_model_len", -1) else f"{value}"]
    return words


def _cpu_space_gib(task: Task, wish: Wish, flags: Mapping[str, object]) -> int:
    """Whole GiB of KV cache that hold the wish (the variable takes whole numbers)."""
    found = budget_of(task, flags, {"VLLM_CPU_KVCACHE_SPACE": "1"})
    per_request = found.capacity.needed_bytes / 2**30
    return max(1, -int(-per_request * (wish.concurrency or 1) // 1))


def _keeps_bound(found: Try) -> bool:
    """Whether one longest prompt holds the others up for no longer than the bound; unknown speeds keep none."""
    stalled = found.estimate.stall_s
    return stalled is not None and stalled.high <= TOKEN_BOUND_S


def _score(found: Try, wish: Wish) -> tuple[float, int]:
    """Less is better. Where no speed is known the number of cards decides."""
    told = found.estimate
    if wish.prefer == "latency":
        return (told.token_s.high if told.token_s else 0.0), found.split.cards
    return (-told.output_tokens_s.low if told.output_tokens_s else 0.0), found.split.cards


def _nearness(found: Try) -> tuple[int, float, float]:
    """More is nearer to fitting: it starts, and holds more requests; else it takes less on a card."""
    order = {"fits": 2, "unsafe_headroom": 1}
    holds = held(found.budget, found.wish)
    return order.get(found.budget.verdict, 0), holds, -found.budget.tightest.weights.value


def _why_not(found: Try) -> Message:
    if found.budget.verdict == "fits":
        return msg(
            "holds {held:.1f} of {n} requests at once", held=held(found.budget, found.wish), n=found.wish.concurrency
        )
    return found.budget.reasons[0] if found.budget.reasons else msg("not known to fit")


def _slower(found: Try, best: Try, wish: Wish) -> Message:
    """By what an estimate lost, in the number that was asked for."""
    mine, other = found.estimate, best.estimate
    if wish.prefer == "latency" and mine.token_s and other.token_s:
        return msg(
            "{mine:.1f} ms a token at worst, against {best:.1f} (estimate)",
            mine=mine.token_s.high * 1000,
            best=other.token_s.high * 1000,
        )
    if mine.output_tokens_s and other.output_tokens_s:
        return msg(
            "{mine:,.0f} tokens/s at worst, against {best:,.0f} (estimate)",
            mine=mine.output_tokens_s.low,
            best=other.output_tokens_s.low,
        )
    return msg("more cards than are needed")
