"""When a wish does not fit: the nearest plans that do, each with what it costs, and the smallest hardware."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from trimtab.engine.flags import FlagTable
from trimtab.errors import ModelError
from trimtab.facts.catalogue import lookup
from trimtab.messages import Message, msg
from trimtab.plan.memory.versions import release
from trimtab.plan.outcome import Alternative
from trimtab.plan.search import Try, command_of, first_fit
from trimtab.plan.wish import Task, Wish

STEPS = 1024
"""Contexts are cut to multiples of this."""
VARIANTS = ("AWQ", "GPTQ-Int4", "FP8")
"""Endings that publishers give the names of quantised checkpoints."""
MORE_CARDS = (2, 4, 8, 16, 32)
FP8_KV_CAPABILITY = 8.9
"""Triton's and FlashAttention's kernels hold fp8 caches from here on (v1/attention/backends/triton_attn.py)."""


def alternatives(task: Task, wish: Wish) -> Iterator[Alternative]:
    """The nearest wishes that fit on these cards, then other models' bytes, then more cards."""
    makers: tuple[Callable[[Task, Wish], Alternative | None], ...] = (
        _fewer_requests, _shorter_context, _fp8_cache, _quantised, _more_cards,
    )  # fmt: skip
    for make in makers:
        found = make(task, wish)
        if found is not None:
            yield found


def _alternative(task: Task, found: Try, what: Message, cost: Message) -> Alternative:
    return Alternative(what, cost, command_of(task, found), found.budget)


def _largest(fits: Callable[[int], Try | None], most: int) -> tuple[int, Try] | None:
    """The largest number up to `most` that fits, where fewer always fit when more do."""
    low, high = 1, most
    best: tuple[int, Try] | None = None
    while low <= high:
        middle = (low + high) // 2
        found = fits(middle)
        if found is None:
            high = middle - 1
        else:
            best, low = (middle, found), middle + 1
    return best


def _fewer_requests(task: Task, wish: Wish) -> Alternative | None:
    wanted = wish.concurrency or 1
    if "max_num_seqs" in task.pinned or wanted < 2:
        return None
    found = _largest(lambda n: first_fit(task, replace(wish, concurrency=n)), wanted - 1)
    if found is None:
        return None
    return _alternative(
        task,
        found[1],
        msg("{n} requests at once instead of {wanted}", n=found[0], wanted=wanted),
        msg("{n} of {wanted} wait in the queue", n=wanted - found[0], wanted=wanted),
    )


def _shorter_context(task: Task, wish: Wish) -> Alternative | None:
    wanted = wish.context or 0
    if "max_model_len" in task.pinned or wanted <= STEPS:
        return None
    shape = replace(wish, input_tokens=None, output_tokens=None)
    found = _largest(lambda n: first_fit(task, replace(shape, context=n * STEPS)), (wanted - 1) // STEPS)
    if found is None:
        return None
    length = found[0] * STEPS
    return _alternative(
        task,
        found[1],
        msg("a context of {n:,} instead of {wanted:,}", n=length, wanted=wanted),
        msg("longer requests are refused with HTTP 400"),
    )


def _fp8_cache(task: Task, wish: Wish) -> Alternative | None:
    if not has_fp8_cache(task) or "kv_cache_dtype" in task.pinned:
        return None
    found = first_fit(replace(task, pinned={**task.pinned, "kv_cache_dtype": "fp8"}), wish)
    if found is None:
        return None
    return _alternative(
        task,
        found,
        msg("an fp8 KV cache: half the bytes per token, with some loss of accuracy"),
        msg("accuracy: keys and values in 8 bits, unscaled where the checkpoint brings no scales; measure it first"),
    )


def has_fp8_cache(task: Task) -> bool:
    """Whether this vLLM holds an fp8 cache on these cards."""
    flag = FlagTable.for_version(task.version).find("--kv-cache-dtype")
    known = flag is not None and ("fp8" in flag.choices or flag.open)
    cards = all(c.vendor == "nvidia" and c.capability >= FP8_KV_CAPABILITY for c in task.cards)
    return known and cards and release(task.version) >= (0, 9)


def _quantised(task: Task, wish: Wish) -> Alternative | None:
    """The first quantised variant, by the name that publishers give it, which fits."""
    if task.model.quantisation is not None:
        return None
    for scheme in VARIANTS:
        name = f"{task.model_path}-{scheme}"
        try:
            facts = lookup.find_model(name).facts()
        except ModelError:
            return None
        if scheme == "FP8" and task.cards[0].capability < FP8_KV_CAPABILITY:
            continue
        other = replace(task, model=facts, model_path=name, served_name=f"{task.served_name}-{scheme}")
        found = first_fit(other, wish)
        if found is not None:
            before, after = task.model.stored_bytes / 2**30, facts.stored_bytes / 2**30
            return _alternative(
                other,
                found,
                msg("weights in {scheme}: {name}", scheme=scheme, name=name),
                msg(
                    "accuracy, for {after:.1f} GiB of weights instead of {before:.1f}; look whether it is published",
                    after=after,
                    before=before,
                ),
            )
    return None


def _more_cards(task: Task, wish: Wish) -> Alternative | None:
    """The smallest number of the same cards that does, in powers of two."""
    if task.on_cpu:
        return None
    for count in (n for n in MORE_CARDS if n > len(task.cards)):
        found = first_fit(replace(task, cards=(task.cards[0],) * count), wish)
        if found is not None:
            return _alternative(
                task,
                found,
                msg("{n} x {card} instead of {have}", n=count, card=task.cards[0].name, have=len(task.cards)),
                msg("{n} more cards", n=count - len(task.cards)),
            )
    return None
