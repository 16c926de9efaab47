"""What limits a vLLM server right now, from looks at its counters over about a minute: one kind, one sentence. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from trimtab.engine.before import grown, most
from trimtab.engine.flight import Moment
from trimtab.engine.vitals import Vitals
from trimtab.messages import Message, msg

WINDOW_S = 60.0
STALLED_S = 30.0  # one step of a long prompt takes up to 15 s on a CPU
_FULL, _NEAR, _HALF = 0.95, 0.90, 0.5
_LOW_HITS, _ENOUGH_TOKENS = 0.10, 10_000  # of prompts in the window: fewer say nothing of a prefix cache


class Kind(StrEnum):
    """What a server is bound by."""

    UNKNOWN = "unknown"  # its counters do not tell
    IDLE = "idle"
    STALLED = "stalled"
    KV_BOUND = "kv-bound"
    QUEUE_BOUND = "queue-bound"
    PREFILL_BOUND = "prefill-bound"
    NEAR_FULL = "near-full"
    LOW_HITS = "low-prefix-hits"
    FINE = "fine"


class Look(msgspec.Struct, frozen=True):
    """One look: seconds since the epoch, and what was seen; None where nobody answered or it was not vLLM."""

    at: float
    vitals: Vitals | None


class Rates(msgspec.Struct, frozen=True):
    """What happened over `span_s` seconds; None where this version does not count it, or with one look only."""

    span_s: float = 0.0
    tokens_s: float | None = None  # generated
    prompt_tokens_s: float | None = None
    preemptions: int | None = None
    finished: int | None = None
    prompt_tokens: int | None = None
    hit_rate: float | None = None  # of prompt tokens; where nothing was looked up in the span, since the start
    prefill_share: float | None = None  # of the time of requests that finished in the span, not of waiting
    most_running: int | None = None
    still_s: float = 0.0  # how long nothing moved


class Reading(msgspec.Struct, frozen=True):
    """What limits it, and the next step."""

    kind: Kind
    text: Message


class Slots(msgspec.Struct, frozen=True):
    """What the launch command sets; None where it does not say, or nobody knows the command."""

    max_num_seqs: int | None = None


def look_of(moment: Moment) -> Look:
    """A moment of the flight recorder as a look."""
    if moment.running is None:
        return Look(moment.at, None)
    seen = Vitals(
        running=moment.running, waiting=moment.waiting, kv_usage=moment.kv, preemptions=moment.preemptions,
        finished=moment.finished, generated=moment.generated, prompted=moment.prompted, steps=moment.steps,
        hits=moment.hits, queries=moment.queries,
    )  # fmt: skip
    return Look(moment.at, seen)


def rates(looks: Sequence[Look]) -> Rates:
    """Over the looks of the window; a counter that fell began anew with its server."""
    seen = [look for look in looks if look.vitals is not None]
    if not seen:
        return Rates()
    last = seen[-1].vitals
    assert last is not None
    span_s = seen[-1].at - seen[0].at
    tokens, prompted = _grown(seen, lambda v: v.generated), _grown(seen, lambda v: v.prompted)
    return Rates(
        span_s=span_s,
        tokens_s=tokens / span_s if tokens is not None and span_s > 0 else None,
        prompt_tokens_s=prompted / span_s if prompted is not None and span_s > 0 else None,
        preemptions=_grown(seen, lambda v: v.preemptions),
        finished=_grown(seen, lambda v: v.finished),
        prompt_tokens=_grown(seen, lambda v: v.queries),
        hit_rate=_hit_rate(seen, last),
        prefill_share=_prefill_share(seen),
        most_running=most(look.vitals.running for look in seen if look.vitals is not None),
        still_s=_still_s(seen),
    )


UNTOLD = {
    "waiting": msg("waiting"),
    "KV use": msg("KV use"),
    "tokens": msg("tokens"),
    "prompt tokens": msg("prompt tokens"),
    "prefix hits": msg("prefix hits"),
    "preemptions": msg("preemptions"),
}
"""Names of what `missing` names, as they are shown."""


def missing(vitals: Vitals | None) -> tuple[str, ...]:
    """What this server's counters do not tell, in the words of the screen."""
    if vitals is None:
        return ()
    hits = vitals.hit_rate if vitals.queries is None else vitals.queries
    told = {
        "waiting": vitals.waiting,
        "KV use": vitals.kv_usage,
        "tokens": vitals.generated,
        "prompt tokens": vitals.prompted,
        "prefix hits": hits,
        "preemptions": vitals.preemptions,
    }
    return tuple(name for name, value in told.items() if value is None)


def read_bottleneck(looks: Sequence[Look], slots: Slots) -> Reading:
    """The reading of the last look in the light of those before it."""
    now = looks[-1].vitals if looks else None
    if now is None or now.running is None:
        text = msg("no vLLM counters at /metrics (another server, --disable-log-stats, or no answer): nothing to judge")
        return Reading(Kind.UNKNOWN, text)
    seen = rates(looks)
    for judge in _JUDGES:
        found = judge(now, seen, slots)
        if found is not None:
            return found
    return _fine(now, seen, slots)


def _idle(now: Vitals, seen: Rates, slots: Slots) -> Reading | None:
    if now.running or now.waiting or seen.tokens_s:
        return None
    return Reading(Kind.IDLE, msg("idle: no request runs or waits"))


def _stalled(now: Vitals, seen: Rates, slots: Slots) -> Reading | None:
    if seen.still_s < STALLED_S or not (now.running or now.waiting):
        return None
    text = msg(
        "stalled: {n} requests run, {w} wait, and nothing moved for {s:.0f} s; look at the log (trimtab logs)",
        n=now.running,
        w=now.waiting or 0,
        s=seen.still_s,
    )
    return Reading(Kind.STALLED, text)


def _kv_bound(now: Vitals, seen: Rates, slots: Slots) -> Reading | None:
    most_running = max(seen.most_running or 0, now.running or 0)
    if seen.preemptions:
        why = msg(
            "KV-bound: {n} preemptions in the last {s:.0f} s with up to {running} running",
            n=seen.preemptions,
            s=seen.span_s,
            running=most_running,
        )
    elif now.waiting and now.kv_usage is not None and now.kv_usage >= _FULL:
        why = msg("KV-bound: {w} wait for the KV cache, which is {kv:.0%} full", w=now.waiting, kv=now.kv_usage)
    else:
        return None
    text = msg(
        "{why}; raise --gpu-memory-utilization (more KV cache) or lower --max-num-seqs (below {n}) or --max-model-len",
        why=why,
        n=most_running,
    )
    return Reading(Kind.KV_BOUND, text)


def _prefill_bound(now: Vitals, seen: Rates, slots: Slots) -> Reading | None:
    if not now.running or not seen.finished or seen.prefill_share is None or seen.prefill_share <= 0.5:
        return None
    text = msg(
        "prefill-bound: requests spend {share:.0%} of their time on prompts ({p:.0f} prompt tokens/s, {g:.0f} "
        "generated); raise --max-num-batched-tokens, or let requests begin alike (prefix caching)",
        share=seen.prefill_share,
        p=seen.prompt_tokens_s or 0.0,
        g=seen.tokens_s or 0.0,
    )
    return Reading(Kind.PREFILL_BOUND, text)


def _queue_bound(now: Vitals, seen: Rates, slots: Slots) -> Reading | None:
    if not now.waiting or not now.running:
        return None
    kv = msg("the KV cache is {kv:.0%} full", kv=now.kv_usage) if now.kv_usage is not None else _NOT_TOLD
    limit, step = msg("--max-num-seqs is not known here"), msg("raise --max-num-seqs, or add a server")
    if slots.max_num_seqs is not None and now.running < slots.max_num_seqs:
        limit = msg("fewer than --max-num-seqs {n}", n=slots.max_num_seqs)
        step = msg("raise --max-num-batched-tokens: prompts wait for room in a step")
        if now.kv_usage is not None and now.kv_usage >= _HALF:
            step = msg("the next prompt may need more KV cache than is free: raise --gpu-memory-utilization")
    elif slots.max_num_seqs is not None:
        limit = msg("--max-num-seqs is {n}", n=slots.max_num_seqs)
    text = msg(
        "queue-bound: {w} wait while {r} run ({limit}), and {kv}; {step}",
        w=now.waiting,
        r=now.running,
        limit=limit,
        kv=kv,
        step=step,
    )
    return Reading(Kind.QUEUE_BOUND, text)


def _near_full(now: Vitals, seen: Rates, slots: Slots) -> Reading | None:
    if now.kv_usage is None or now.kv_usage < _NEAR:
        return None
    text = msg(
        "near full: the KV cache is {kv:.0%} full with {n} running; one more or a longer one may be preempted",
        kv=now.kv_usage,
        n=now.running,
    )
    return Reading(Kind.NEAR_FULL, text)


def _low_hits(now: Vitals, seen: Rates, slots: Slots) -> Reading | None:
    if seen.hit_rate is None or seen.hit_rate >= _LOW_HITS or (seen.prompt_tokens or 0) < _ENOUGH_TOKENS:
        return None
    text = msg(
        "low prefix hits: {rate:.0%} of {n} prompt tokens came from the cache; begin prompts with what they share, and "
        "put dates and names last",
        rate=seen.hit_rate,
        n=f"{seen.prompt_tokens:,}",
    )
    return Reading(Kind.LOW_HITS, text)


_JUDGES: tuple[Callable[[Vitals, Rates, Slots], Reading | None], ...] = (
    _idle, _stalled, _kv_bound, _prefill_bound, _queue_bound, _near_full, _low_hits,
)  # fmt: skip
_NOT_TOLD = msg("this server does not tell how full its KV cache is")


def _fine(now: Vitals, seen: Rates, slots: Slots) -> Reading:
    """Nothing limits it, as far as it tells; where it does not tell, that is said."""
    untold = [name for name in ("KV use", "preemptions") if name in missing(now)]
    if untold:
        names = msg("{first}, {second}", first=UNTOLD[untold[0]], second=UNTOLD[untold[-1]])
        text = msg("{n} run; this server does not tell {names}, so whether its KV cache limits it is not known",
                   n=now.running, names=names if len(untold) > 1 else UNTOLD[untold[0]])  # fmt: skip
        return Reading(Kind.UNKNOWN, text)
    if not now.running:
        return Reading(Kind.FINE, msg("fine: no request runs now"))
    usage = now.kv_usage or 0.0
    more = int(now.running * (1 - usage) / usage + 1e-6) if usage > 0 else 0
    if slots.max_num_seqs is not None:
        more = min(more, max(0, slots.max_num_seqs - now.running))
    if not more:
        return Reading(Kind.FINE, msg("fine: {n} run, none waits", n=now.running))
    return Reading(Kind.FINE, msg("fine: {n} run, none waits; room for about {more} more like these",
                                  n=now.running, more=more))  # fmt: skip


def _grown(seen: Sequence[Look], count: Callable[[Vitals], int | None]) -> int | None:
    return grown(count(look.vitals) for look in seen if look.vitals is not None)


def _hit_rate(seen: Sequence[Look], last: Vitals) -> float | None:
    hits, queries = _grown(seen, lambda v: v.hits), _grown(seen, lambda v: v.queries)
    if hits is not None and queries:
        return hits / queries
    if last.hits is not None and last.queries:
        return last.hits / last.queries
    return last.hit_rate


def _prefill_share(seen: Sequence[Look]) -> float | None:
    first, last = seen[0].vitals, seen[-1].vitals
    assert first is not None
    assert last is not None
    if None in (first.prefilled_s, first.decoded_s, last.prefilled_s, last.decoded_s):
        return None
    prefill = (last.prefilled_s or 0.0) - (first.prefilled_s or 0.0)
    decode = (last.decoded_s or 0.0) - (first.decoded_s or 0.0)
    return prefill / (prefill + decode) if prefill >= 0 and prefill + decode > 0 else None


def _still_s(seen: Sequence[Look]) -> float:
    """How long the counters that this version has were the same; 0 where it has none that move."""
    if seen[-1].vitals is None or _moves(seen[-1].vitals)[:3] == (None, None, None):
        return 0.0
    since = seen[-1].at
    for look in reversed(seen):
        if look.vitals is None or _moves(look.vitals) != _moves(seen[-1].vitals):
            break
        since = look.at
    return seen[-1].at - since


def _moves(vitals: Vitals) -> tuple[float | None, ...]:
    return (vitals.generated, vitals.prompted, vitals.steps, vitals.finished, vitals.kv_usage)
