"""The parts of a trial that run in a process of their own: verification, and one round of load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trimtab.bench.endpoint import Target
from trimtab.bench.measure import Plan, measure
from trimtab.bench.rows import server_values
from trimtab.bench.serverlog import LogSource
from trimtab.bench.tuning.objective import Round, round_of
from trimtab.bench.verify import ONE_REQUEST, verify
from trimtab.errors import EngineError
from trimtab.messages import Message, msg

if TYPE_CHECKING:
    from trimtab.cli.trial import Task

PROMPTS = 64
"""Different prompts of a round bounded by time; they come again under new first words, so that no cache knows them."""


def verified(url: str, key: str, model: str, context: int, at_once: int, log: str, dummy: bool) -> Message | None:
    """Why the server did not pass; None where it did. With random weights an empty answer is none of its faults."""
    found = verify(Target(url, key, model), context=context, concurrency=at_once, log=LogSource(Path(log)))
    for one in found.criteria:
        if one.passed is False and not (dummy and one.name == ONE_REQUEST):
            why = one.evidence[0] if one.evidence else msg("no evidence")
            return msg("not verified, {criterion}: {why}", criterion=one.name.replace("_", " "), why=why)
    return None


def measured(url: str, key: str, model: str, task: Task, number: int) -> Round:
    """One round; the same requests for the same number. EngineError where a request failed, or nothing came to its end
    in the first round. A later one that the machine held up counts as slow as it was: it says nothing of the launch.
    """
    load = task.load if number == 0 else msgspec.structs.replace(task.load, warmup=0)
    plan = Plan(
        Target(url, key, model), task.shape, load, task.seed + number, task.targets, prompts=PROMPTS,
    )  # fmt: skip
    done = measure(plan)
    found = done.summary
    if number == 0 and not found.failed and not found.finished:
        raise EngineError(
            msg("no answer came to its end within a round of {s:g} s", s=load.duration_s or 0.0),
            hint=msg("Make rounds longer: --round {s:g}.", s=4 * (load.duration_s or 1.0)),
        )
    if found.failed:
        kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(found.failed.items()))
        raise EngineError(
            msg("{count} of {all} requests failed: {kinds}", count=sum(found.failed.values()),
                all=len(done.outcome.rows), kinds=kinds)
        )  # fmt: skip
    return round_of(found, done.outcome.rows, task.targets, server_values(done.outcome.looks))
