"""When a wish does not fit: the nearest plans that do, each with what it costs, and the smallest hardware."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from trimtab.engine.flags import FlagTable
from trimtab.messages import Message, msg
from trimtab.plan.estimate import host_link_gb_s
from trimtab.plan.kinds import smallest_sets
from trimtab.plan.memory.allocator import GIB
from trimtab.plan.outcome import Alternative
from trimtab.plan.search import BATCHES, Try, budget_of, command_of, first_fit
from trimtab.plan.splits import SIZES, Split
from trimtab.plan.unsupported import newest_that_runs, too_old, unknown_model, with_release
from trimtab.plan.variants import has_fp8_cache, variants
from trimtab.plan.wish import Task, Wish

STEPS = 1024
"""Contexts are cut to multiples of this."""
MORE_CARDS = (2, 4, 8, 16, 32)


_Maker = Callable[[Task, Wish], Alternative | None]


def alternatives(task: Task, wish: Wish, longer: Sequence[int] = ()) -> tuple[Alternative, ...]:
    """The nearest wishes that fit on these cards, other models' bytes, more and other cards.

    Two changes at once are tried where none alone serves, and weights in the host's memory last: they slow down every
    token. `longer`: where the user left the context open, those beyond the wish's, the longest first; what has room
    for one is told with it.
    """
    here: tuple[_Maker, ...] = (_other_release, _fewer_requests, _shorter_context, _fp8_cache)
    found = [one for make in here if (one := make(task, wish)) is not None]
    found += _quantised(task, wish, longer)
    found = found or _quantised_and_less(task, wish)
    if not found and (offloaded := _offloaded(task, wish)) is not None:
        found = [offloaded]
    elsewhere = [make(task, wish, longer) for make in (_more_cards, _other_cards)]
    return (*found, *(one for one in elsewhere if one is not None))


def _longest(task: Task, wish: Wish, longer: Sequence[int]) -> Try | None:
    """What fits the wish, at the longest of the contexts at which it still does."""
    too_large: dict[Split, Try] = {}
    best = first_fit(task, wish, too_large)
    if best is None or not longer:
        return best
    there = len(task.cards) * task.cards[0].total_gib
    wishes = [replace(wish, context=length) for length in reversed(longer)]
    held = [one for one in wishes if _least_gib(task, one) < there]
    more = _largest(lambda n: first_fit(task, held[n - 1], too_large), len(held))
    return best if more is None else more[1]


def _at_length(what: Message, found: Try, longer: Sequence[int]) -> Message:
    """With the context that it has room for, where that was left open."""
    if not longer:
        return what
    return msg("{what}: {n} requests of {size:,} tokens at once", what=what, n=found.wish.concurrency or 1,
               size=found.wish.request_tokens)  # fmt: skip


def _other_release(task: Task, wish: Wish) -> Alternative | None:
    """The newest vLLM that is built for the cards, where this one is not or does not know the model."""
    refused = too_old(task) or unknown_model(task)
    version = newest_that_runs(task) if refused is not None else None
    if version is None:
        return None
    other = replace(task, version=version)
    found = first_fit(other, wish)
    if found is None:
        return None
    return _alternative(
        other,
        found,
        msg("vLLM {version} instead of {asked}", version=version, asked=task.version),
        msg("what newer releases have; the flags below are those of {version}", version=version),
    )


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
        msg("at most {n} at once instead of {wanted}", n=found[0], wanted=wanted),
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


def _quantised(task: Task, wish: Wish, longer: Sequence[int]) -> list[Alternative]:
    """The first quantised variant which fits, by the name that publishers give it; and each that has more context."""
    told: list[Alternative] = []
    most, smallest = 0, math.inf
    for scheme, other in variants(task):
        if other.model.stored_bytes >= smallest or (told and not longer):
            continue
        found = _longest(other, wish, longer)
        if found is None or (found.wish.context or 1) <= most:
            continue
        most, smallest = found.wish.context or 1, other.model.stored_bytes
        what = msg("weights in {scheme}: {name}", scheme=scheme, name=other.model_path)
        cost = msg(
            "accuracy, for {after:.1f} GiB of weights instead of {before:.1f}; look whether it is published",
            after=other.model.stored_bytes / GIB,
            before=task.model.stored_bytes / GIB,
        )
        told.append(_alternative(other, found, _at_length(what, found, longer), cost))
    return told


def _quantised_and_less(task: Task, wish: Wish) -> list[Alternative]:
    """Quantised variants with fewer requests, else with a shorter context: each that holds more than those before."""
    quantised = list(variants(task))
    for make in (_fewer_requests, _shorter_context):
        told: list[Alternative] = []
        most = (0, 0)
        for scheme, other in quantised:
            found = make(other, wish)
            size = (found.budget.settings.max_num_seqs, found.budget.settings.max_model_len) if found else most
            if found is None or size <= most:
                continue
            most = size
            what = msg("weights in {scheme}: {name}, and {what}", scheme=scheme, name=other.model_path,
                       what=found.what)  # fmt: skip
            told.append(replace(found, what=what, cost=msg("accuracy, and {cost}", cost=found.cost)))
        if told:
            return told
    return []


def _offloaded(task: Task, wish: Wish) -> Alternative | None:
    """The least weights in host memory with which the wish fits; every step reads them over the host's link."""
    flag = FlagTable.for_version(task.version).find("--cpu-offload-gb")
    card = task.cards[0]
    if card.vendor != "nvidia" or card.unified or flag is None or "cpu_offload_gb" in task.pinned:
        return None
    cards, weights = len(task.cards), task.model.stored_bytes / GIB
    most = math.ceil(weights / cards)
    least = max(1, math.floor(_least_gib(task, wish) / cards - card.total_gib))

    def fits(spared: int) -> Try | None:
        offload = most + 1 - spared
        found = first_fit(replace(task, pinned={**task.pinned, "cpu_offload_gb": offload}), wish)
        return found if found is not None and found.budget.settings.cpu_offload_gb > 0 else None

    best = _largest(fits, most + 1 - least)
    if best is None:
        return None
    found = best[1]
    each, ranks = int(found.budget.settings.cpu_offload_gb), found.budget.settings.cards_needed
    link = host_link_gb_s(card)
    return _alternative(
        task,
        found,
        msg("{each} GiB of weights a card kept in the host's memory (--cpu-offload-gb)", each=each),
        msg(
            "each step reads them over PCIe, so that a token takes {ms:,.0f} ms at best at the {link:.0f} GB/s of the "
            "link; {host} GiB of host memory are pinned",
            ms=each * GIB / link / 1e6,
            link=link,
            host=each * ranks,
        ),
    )


def _least_gib(task: Task, wish: Wish) -> float:
    """What no set of cards is below: the weights once, and the caches of the requests where no rank repeats them.

    Windows hold the less the smaller the batch.
    """
    alone = {name: value for name, value in task.pinned.items() if name not in SIZES}
    flags = {"max_model_len": wish.context, "max_num_batched_tokens": BATCHES[-1], **alone}
    layout = budget_of(task, flags, {}).layout
    each = layout.request_bytes(layout.whole, wish.request_tokens) if layout.groups else 0
    return (task.model.stored_bytes + (wish.concurrency or 1) * each) / GIB


def _more_cards(task: Task, wish: Wish, longer: Sequence[int]) -> Alternative | None:
    """The smallest number of the same cards that does, in powers of two."""
    if task.on_cpu:
        return None
    least = _least_gib(task, wish) / task.cards[0].total_gib
    for count in (n for n in MORE_CARDS if n > len(task.cards) and n >= least):
        found = _longest(replace(task, cards=(task.cards[0],) * count), wish, longer)
        if found is not None:
            what = msg("{n} x {card} instead of {have}", n=count, card=task.cards[0].name, have=len(task.cards))
            cost = msg("cards: {n} more", n=count - len(task.cards))
            return _alternative(task, found, _at_length(what, found, longer), cost)
    return None


def _other_cards(task: Task, wish: Wish, longer: Sequence[int]) -> Alternative | None:
    """The set of other cards with the least memory that serves the wish."""
    if task.on_cpu:
        return None
    for name, count, card in smallest_sets(_least_gib(task, wish)):
        other = with_release(replace(task, cards=(card,) * count))
        found = _longest(other, wish, longer) if name != task.cards[0].name else None
        if found is not None:
            what = msg("{n} x {card} instead of {have} x {old}", n=count, card=name, have=len(task.cards),
                       old=task.cards[0].name)  # fmt: skip
            cost = msg("other hardware; trimtab plan ... --gpu any ranks all sets")
            return _alternative(other, found, _at_length(what, found, longer), cost)
    return None
