"""From a model, cards and a wish to a launch that holds, with the memory behind it and a reason for every flag."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.engine.quantities import wrong_value
from trimtab.errors import UsageError
from trimtab.messages import Message, msg
from trimtab.plan.alternatives import alternatives
from trimtab.plan.considered import considered
from trimtab.plan.given_up import given_up
from trimtab.plan.outcome import Alternative, Lost, Plan
from trimtab.plan.parallel import refusals
from trimtab.plan.reasons import name_reason, reasons
from trimtab.plan.safety import reserve
from trimtab.plan.search import BATCHES, CPU_BATCH, Searched, Try, command_of, search, to_argv, typed
from trimtab.plan.splits import Split, splits
from trimtab.plan.unsupported import unsupported, with_release
from trimtab.plan.wish import DEFAULT_CONCURRENCY, Task, Wish, alike, held, settled_wish

__all__ = ["Alternative", "Lost", "Plan", "Split", "Task", "Wish", "plan", "splits", "to_argv"]

CONTEXTS = (131072, 65536, 32768, 16384, 8192, 4096, 2048)
THROUGHPUT = (1024, 512, 256, 128, 64, 32, 16, 8)
"""Requests at once that are tried for throughput when no wish names a number; the first is vLLM's own default on cards
of 70 GiB and more, the third on others (0.26 and 0.33 engine/arg_utils.py `get_batch_defaults`)."""
CPU_CONTEXT = 8192
SHOWN_LOSSES = 5
FEWER_HOLD = 1.25
"""By how much more requests a launch may hold when it is made for fewer: their states and graphs take less."""


def plan(task: Task, wish: Wish) -> Plan:
    """The smallest set of cards that serves the wish; when none does, the nearest try with alternatives.

    With `prefer` latency or throughput: of all splits of the cards the best by the estimate. Cards of mixed kinds are
    taken as the weakest of them. UsageError for a wish that makes no sense.
    """
    task, wish = _settled(task, wish)
    refusal = unsupported(task)
    if not _known(task):
        return _unjudged(task, wish)
    found = _searched(task, wish)
    best, nearest, lost = found.best, found.nearest, found.lost
    if best is not None and refusal is None:
        return _fitting(task, wish, best, lost)
    shown = best or nearest
    if shown is None:
        raise _no_split(task, wish)
    made = _made(task, shown, () if refusal else lost[:SHOWN_LOSSES])
    longer = () if wish.context else tuple(n for n in _lengths(task) if n > (shown.wish.context or 0))
    return replace(made, refusal=refusal, alternatives=alternatives(task, shown.wish, longer))


def plan_if_fits(task: Task, wish: Wish) -> Plan | None:
    """The same where it fits, without looking for what else would do."""
    task, wish = _settled(task, wish)
    if unsupported(task) is not None or not _known(task):
        return None
    found = _searched(task, wish)
    return None if found.best is None else _fitting(task, wish, found.best, found.lost)


def _known(task: Task) -> bool:
    """Whether the memory model can judge it."""
    return bool(task.model.layers) and not task.model.missing


def _unjudged(task: Task, wish: Wish) -> Plan:
    """Of a model whose memory is not known: one try, of which the verdict says what is missing."""
    shown = search(task, _wishes(task, wish)[0]).nearest
    if shown is None:
        raise _no_split(task, wish)
    return replace(_made(task, shown, ()), refusal=unsupported(task))


def _searched(task: Task, wish: Wish) -> Searched:
    """The first of the wishes that fits; else what the last of them, which asks least, comes nearest with."""
    too_large: dict[Split, Try] = {}
    holds: dict[int, float] = {}
    wishes = _wishes(task, wish)
    for one in wishes:
        length = one.context or 0
        if (one.concurrency or 1) > FEWER_HOLD * holds.get(length, float("inf")) + 1:
            continue
        found = search(task, one, too_large)
        if found.best is not None:
            return found
        if found.nearest is not None and found.nearest.budget.verdict == "fits":
            holds[length] = held(found.nearest.budget, one)
    return found if len(wishes) == 1 else search(task, wishes[-1])


def _settled(task: Task, wish: Wish) -> tuple[Task, Wish]:
    task = with_release(replace(task, cards=alike(task.cards), pinned=typed(task.pinned)))
    return task, settled_wish(task, wish)


def _wishes(task: Task, wish: Wish) -> list[Wish]:
    """The wish itself; where it leaves numbers open, those that are tried, the most first."""
    known = replace(wish, concurrency=wish.concurrency or DEFAULT_CONCURRENCY)
    lengths = [wish.context] if wish.context else _lengths(task)
    if wish.concurrency is not None or wish.prefer != "throughput":
        return [replace(known, context=c) for c in lengths]
    counts = (*THROUGHPUT, DEFAULT_CONCURRENCY)
    return [replace(known, context=c, concurrency=n) for c in lengths for n in counts]


def _lengths(task: Task) -> list[int]:
    longest = task.model.max_positions or CONTEXTS[-1]
    if task.on_cpu:
        return [min(longest, CPU_CONTEXT)]
    return [longest, *(c for c in CONTEXTS if c < longest)]


def _made(
    task: Task,
    found: Try,
    lost: tuple[Lost, ...],
    given_up: tuple[Message, ...] = (),
    considered: tuple[Lost, ...] = (),
    with_graphs: Message | None = None,
) -> Plan:
    told = found.estimate
    return Plan(
        command=command_of(task, found),
        env=found.env,
        budget=found.budget,
        wish=found.wish,
        why=(
            name_reason(task.served_name),
            *reasons(found.budget, found.flags, found.env, task.pinned, found.wish, told, with_graphs),
        ),
        split=found.split,
        estimate=told,
        reserve=None if task.on_cpu else reserve(found.budget, found.budget.tightest),
        lost=lost,
        considered=considered,
        given_up=given_up,
    )


def _fitting(task: Task, asked: Wish, best: Try, lost: tuple[Lost, ...]) -> Plan:
    shown = tuple(one for one in lost if one.what != best.split.text)[:SHOWN_LOSSES]
    with_graphs = next((one.reason for one in lost if one.what == best.split.text), None)
    return _made(task, best, shown, tuple(given_up(task, asked, best)), tuple(considered(task, best)), with_graphs)


def _no_split(task: Task, wish: Wish) -> UsageError:
    """Why there was nothing to try."""
    most = CPU_BATCH if task.on_cpu else BATCHES[0]
    if (wish.concurrency or 1) > most:
        return UsageError(
            msg("{n:,} requests at once are more than one step holds: {most:,} tokens", n=wish.concurrency, most=most),
            hint=msg("Ask for at most that many; what comes beyond waits in the queue."),
        )
    kinds = ("tensor", "pipeline", "data")
    tensor, pipeline, data = (_pinned_size(task, f"{kind}_parallel_size") for kind in kinds)
    why = refusals(task.model, tensor, pipeline)
    if not why and tensor * pipeline * data > len(task.cards):
        why = (msg("{tensor} x {pipeline} x {data} ranks need {need} GPUs; {n} are named", tensor=tensor, data=data,
                   pipeline=pipeline, need=tensor * pipeline * data, n=len(task.cards)),)  # fmt: skip
    return UsageError(
        why[0] if why else msg("no split of the model over {n} GPUs is possible", n=len(task.cards)),
        hint=msg("Take a size that it can, and as many GPUs; without --set the plan finds them."),
    )


def _pinned_size(task: Task, name: str) -> int:
    size = task.pinned.get(name, 1)
    if not isinstance(size, int) or size < 1:
        raise wrong_value(name, str(size))
    return size
