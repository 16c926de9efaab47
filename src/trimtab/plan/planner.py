"""From a model, cards and a wish to a launch that holds, with the memory behind it and a reason for every flag."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.engine.quantities import wrong_value
from trimtab.errors import UsageError
from trimtab.messages import Message, msg
from trimtab.plan.alternatives import alternatives
from trimtab.plan.considered import considered
from trimtab.plan.memory.versions import NEWEST
from trimtab.plan.outcome import Alternative, Lost, Plan
from trimtab.plan.parallel import refusals
from trimtab.plan.reasons import reasons
from trimtab.plan.safety import reserve
from trimtab.plan.search import BATCHES, CPU_BATCH, Searched, Try, command_of, nearness, search, to_argv, typed
from trimtab.plan.splits import Split, splits
from trimtab.plan.unsupported import unsupported, with_release
from trimtab.plan.wish import DEFAULT_CONCURRENCY, Task, Wish, alike, settled_wish

__all__ = ["Alternative", "Lost", "Plan", "Split", "Task", "Wish", "plan", "splits", "to_argv"]

CONTEXTS = (131072, 65536, 32768, 16384, 8192, 4096, 2048)
THROUGHPUT = (1024, 512, 256, 128, 64, 32, 16, 8)
"""Requests at once that are tried for throughput when no wish names a number; the first is vLLM's own default on cards
of 70 GiB and more, the third on others (0.26 and 0.33 engine/arg_utils.py `get_batch_defaults`)."""
CPU_CONTEXT = 8192
SHOWN_LOSSES = 5


def plan(task: Task, wish: Wish) -> Plan:
    """The smallest set of cards that serves the wish; when none does, the nearest try with alternatives.

    With `prefer` latency or throughput: of all splits of the cards the best by the estimate. Cards of mixed kinds are
    taken as the weakest of them. UsageError for a wish that makes no sense.
    """
    task, wish = _settled(task, wish)
    refusal = unsupported(task)
    found = _searched(task, wish)
    best, nearest, lost = found.best, found.nearest, found.lost
    if best is not None and refusal is None:
        return _fitting(task, wish, best, lost)
    shown = best or nearest
    if shown is None:
        raise _no_split(task, wish)
    made = _made(task, shown, () if refusal else lost[:SHOWN_LOSSES])
    return replace(made, refusal=refusal, alternatives=alternatives(task, shown.wish))


def plan_if_fits(task: Task, wish: Wish) -> Plan | None:
    """The same where it fits, without looking for what else would do."""
    task, wish = _settled(task, wish)
    if unsupported(task) is not None:
        return None
    found = _searched(task, wish)
    return None if found.best is None else _fitting(task, wish, found.best, found.lost)


def _searched(task: Task, wish: Wish) -> Searched:
    """The first of the wishes that fits, else the nearest try of them all."""
    nearest: Try | None = None
    lost: tuple[Lost, ...] = ()
    for one in _wishes(task, wish):
        found = search(task, one)
        if found.best is not None:
            return found
        if nearest is None or (found.nearest and _nearness(found.nearest) > _nearness(nearest)):
            nearest, lost = found.nearest, found.lost
    return Searched(None, nearest, lost)


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


def _nearness(found: Try) -> tuple[int, float, float]:
    """Over wishes of several contexts, a request counts at the whole of its own."""
    return nearness(found, found.budget.capacity.max_concurrency)


def _made(
    task: Task,
    found: Try,
    lost: tuple[Lost, ...],
    given_up: tuple[Message, ...] = (),
    considered: tuple[Lost, ...] = (),
) -> Plan:
    told = found.estimate
    return Plan(
        command=command_of(task, found),
        env=found.env,
        budget=found.budget,
        wish=found.wish,
        why=reasons(found.budget, found.flags, found.env, task.pinned, found.wish, told),
        split=found.split,
        estimate=told,
        reserve=None if task.on_cpu else reserve(found.budget, found.budget.tightest),
        lost=lost,
        considered=considered,
        given_up=given_up,
    )


def _fitting(task: Task, asked: Wish, best: Try, lost: tuple[Lost, ...]) -> Plan:
    shown = tuple(one for one in lost if one.what != best.split.text)[:SHOWN_LOSSES]
    return _made(task, best, shown, _given_up(task, asked, best), tuple(considered(task, best)))


def _given_up(task: Task, asked: Wish, found: Try) -> tuple[Message, ...]:
    """What the user could have had elsewhere, each with its number."""
    said: list[Message] = []
    settings, longest = found.budget.settings, task.model.max_positions
    if task.any_vllm and settings.version < NEWEST:
        said.append(
            msg(
                "newer releases of vLLM: {version} is the last that is built for {card}, compute capability {have:.1f}",
                version=str(settings.version),
                card=task.cards[0].name,
                have=task.cards[0].capability,
            )
        )
    if longest and settings.max_model_len < longest:
        said.append(
            msg("a context of {longest:,}, which the model has: {n:,} here", longest=longest, n=settings.max_model_len)
        )
    if settings.enforce_eager and not task.on_cpu and "enforce_eager" not in task.pinned:
        said.append(msg("CUDA graphs: their memory is needed for the KV cache, and each token takes longer"))
    if found.flags.get("dtype") == "half" and task.model.dtype == "bfloat16":
        said.append(msg("bfloat16: float16 has less range, and a model trained in bfloat16 may overflow"))
    if asked.prefer == "throughput" and asked.concurrency is None and found.wish.input_tokens is None:
        said.append(
            msg(
                "more than {n} at once where requests are shorter than {size:,} tokens: name --input and --output",
                n=found.wish.concurrency or 1,
                size=found.wish.request_tokens,
            )
        )
    spare = len(task.cards) - settings.cards_needed
    if spare > 0:
        said.append(
            msg("{n} of {all} cards, which stay free: --prefer throughput may use them", n=spare, all=len(task.cards))
        )
    if settings.pipeline_parallel_size > 1:
        said.append(msg("speed with few requests: the stages of a pipeline wait for each other"))
    most = CPU_BATCH if task.on_cpu else BATCHES[0]
    useful = min(most, settings.max_model_len * settings.max_num_seqs)
    if settings.max_num_batched_tokens < useful:
        said.append(
            msg(
                "prefill speed: {n:,} tokens a step instead of {most:,}", n=settings.max_num_batched_tokens, most=useful
            )
        )
    return tuple(said)


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
        hint=msg("Name another number of GPUs."),
    )


def _pinned_size(task: Task, name: str) -> int:
    size = task.pinned.get(name, 1)
    if not isinstance(size, int) or size < 1:
        raise wrong_value(name, str(size))
    return size
