"""What a tuning is for, and what one round of load is worth by it: always a figure of which more is better. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from trimtab.bench.stats import Summary, Targets, Timed
from trimtab.errors import UsageError
from trimtab.messages import Message, msg

Objective = Literal["throughput", "latency", "goodput"]
OBJECTIVES: tuple[Objective, ...] = ("throughput", "latency", "goodput")
NEARNESS = 0.01
"""Of one good request, what a request counts by how near it came to its targets: where no launch keeps them, the search
still has a direction."""
MET = 0.9
"""The share of requests that must keep every target for the target to be met."""
_NAMES = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "tpot_s", "e2e": "e2e_s"}


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one round of load. `server`: what its own counters did meanwhile."""

    requests: int
    span_s: float
    output_tokens_s: float
    total_tokens_s: float
    requests_s: float
    ttft_s: float | None = None  # medians
    tpot_s: float | None = None
    ttft_p99_s: float | None = None
    itl_p99_s: float | None = None
    e2e_mean_s: float | None = None
    good_s: float | None = None
    good_share: float | None = None
    nearness: float | None = None  # 1: every request kept every target
    server: dict[str, float] = {}


SHORTEST_IN_ANSWERS = 3
"""A round should last so many answers. Of 128 at once on an H200, with answers of 10 s, a round of 12 s told 2,750
tokens/s where 60 s told 3,290 (benchmarks/data/h200_tune.jsonl, h200_tuning.jsonl; vLLM 0.26)."""


def too_short(found: Round) -> Message | None:
    """Where a round cuts most answers off, so that its rates are too low."""
    if found.e2e_mean_s is None or found.span_s >= SHORTEST_IN_ANSWERS * found.e2e_mean_s:
        return None
    return msg(
        "an answer takes {answer:.1f} s and a round {span:.0f}: those it cuts off do not count, so the rates are too "
        "low; --round {wanted} would do",
        answer=found.e2e_mean_s, span=found.span_s, wanted=math.ceil(SHORTEST_IN_ANSWERS * found.e2e_mean_s),
    )  # fmt: skip


def read_objective(text: str, targets: Targets | None) -> Objective:
    """One of OBJECTIVES. UsageError for another, and where goodput and targets do not go together."""
    found = next((one for one in OBJECTIVES if one == text.strip().lower()), None)
    if found is None:
        raise UsageError(
            msg("--objective does not take {value}", value=repr(text)),
            hint=msg("It takes {names}.", names=", ".join(OBJECTIVES)),
        )
    if found == "goodput" and targets is None:
        raise UsageError(
            msg("--objective goodput needs a target"),
            hint=msg("Say what a good request keeps: --target ttft=500,itl=50 (milliseconds)."),
        )
    if found != "goodput" and targets is not None:
        raise UsageError(
            msg("--target is for --objective goodput; {objective} has none", objective=found),
            hint=msg("Write --objective goodput, or leave out --target."),
        )
    return found


def read_targets(text: str | None) -> Targets | None:
    """Read "ttft=500,itl=50" in milliseconds; UsageError for anything else."""
    if text is None:
        return None
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, bound = part.strip().partition("=")
        try:
            value = float(bound.strip().removesuffix("ms"))
        except ValueError:
            value = -1.0
        key = _NAMES.get(name.strip().lower())
        if key is None or key in found or not 0 < value < 1e9:
            raise UsageError(
                msg("{text!r} is no target", text=part.strip()),
                hint=msg("Write for example ttft=500,itl=50 in milliseconds; ttft, itl (or tpot) and e2e are known."),
            )
        found[key] = value / 1000
    return Targets(**found)


def round_of(
    summary: Summary, rows: tuple[Timed, ...], targets: Targets | None, server: Mapping[str, Any] | None
) -> Round:
    """The figures of a measurement that came whole."""
    whole = [row for row in rows if row.trouble is None]
    near = [_nearness(row, targets) for row in whole] if targets is not None else []
    return Round(
        requests=summary.finished,
        span_s=summary.span_s,
        output_tokens_s=summary.output_tokens_s,
        total_tokens_s=summary.total_tokens_s,
        requests_s=summary.requests_s,
        ttft_s=summary.ttft.p50.value if summary.ttft else None,
        tpot_s=summary.tpot.p50.value if summary.tpot else None,
        ttft_p99_s=summary.ttft.p99.value if summary.ttft else None,
        itl_p99_s=summary.itl.p99.value if summary.itl else None,
        e2e_mean_s=summary.e2e.mean.value if summary.e2e else None,
        good_s=summary.goodput_s,
        good_share=summary.good_share.value if summary.good_share else None,
        nearness=sum(near) / len(near) if near else None,
        server={name: float(value) for name, value in (server or {}).items() if value is not None},
    )


def score(objective: Objective, found: Round) -> float:
    """More is better. Latency: answers a second that one client alone would get, one after the other."""
    if objective == "throughput":
        return found.output_tokens_s
    if objective == "latency":
        return 1 / found.e2e_mean_s if found.e2e_mean_s else 0.0
    return (found.good_s or 0.0) + NEARNESS * found.requests_s * (found.nearness or 0.0)


def unit(objective: Objective) -> Message:
    """What `shown` is in."""
    return {
        "throughput": msg("output tokens/s"),
        "latency": msg("s per answer"),
        "goodput": msg("good requests/s"),
    }[objective]


def shown(objective: Objective, found: float) -> float:
    """A score as people read it: seconds per answer for latency."""
    return 1 / found if objective == "latency" and found else found


def _nearness(row: Timed, targets: Targets) -> float:
    """The least of bound over value, 1 at most."""
    pairs = ((targets.ttft_s, row.ttft_s), (targets.tpot_s, row.tpot_s), (targets.e2e_s, row.e2e_s))
    ratios = [min(1.0, bound / value) for bound, value in pairs if bound is not None and value]
    return min(ratios, default=1.0)
