"""The launches of a tuning: the plan's command with one point's flags in it, and what is known of it before a start."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.bench.tune import Foreseen
from trimtab.bench.tuning.idle import Offered, idle
from trimtab.bench.tuning.objective import Objective, Round
from trimtab.bench.tuning.policy import Next
from trimtab.bench.tuning.space import Point, Space, Value
from trimtab.bench.tuning.trials import Forecast, Trial, said
from trimtab.cli.launch import Launch
from trimtab.engine.command import LaunchCommand
from trimtab.engine.flags import FlagTable
from trimtab.facts.gpu import GpuSet
from trimtab.messages import Message, msg
from trimtab.plan.memory.budget import Budget, budget
from trimtab.plan.memory.defaults import resolve
from trimtab.plan.memory.launch import given_of
from trimtab.plan.memory.versions import release
from trimtab.plan.planner import Plan
from trimtab.plan.safety import at_safe_utilization, reserve, shortage
from trimtab.plan.wish import held
from trimtab.rules import registry
from trimtab.rules.lint import LintFacts, context_of
from trimtab.rules.rule import Severity, Subject
from trimtab.rules.runner import run

UTILIZATION = "gpu-memory-utilization"


class Foreknown(msgspec.Struct, frozen=True):
    """A command with the memory model's word on it; None where the model's memory is not known."""

    command: LaunchCommand
    budget: Budget | None


class Launches:
    """Commands and predictions of every point of a space around one launch."""

    def __init__(
        self, launch: Launch, space: Space, offered: Offered, objective: Objective, gpus: GpuSet, table: FlagTable,
        pinned: frozenset[str],
    ) -> None:  # fmt: skip
        assert launch.plan is not None
        self._launch, self._plan, self._space = launch, launch.plan, space
        self._offered, self._objective, self.gpus, self._table = offered, objective, gpus, table
        in_space = any(knob.flag == UTILIZATION for knob in space.knobs)
        given = launch.command.get(UTILIZATION) is not None
        self._follows = given and not in_space and UTILIZATION not in pinned

    def at(self, point: Point) -> Foreknown:
        """The launch of a point. The utilization follows: the highest that is safe, as in the plan."""
        command = with_values(self._launch.command, self._space.changes(self._space.start, point))
        if not self._plan.budget.known:
            return Foreknown(command, None)
        if not self._follows:
            return Foreknown(command, self._budget(command))

        def at(share: float) -> Budget:
            return self._budget(command.with_flag(UTILIZATION, f"{share:.2f}"))

        found = at_safe_utilization(at)
        share = found.settings.gpu_memory_utilization
        return Foreknown(command.with_flag(UTILIZATION, f"{share:.2f}"), found)

    def foresee(self, step: Next, trials: Sequence[Trial]) -> Foreseen:
        """The launch's words, what the memory model says of it, and why it is not worth a start or cannot have one."""
        known = self.at(step.point)
        told = None if known.budget is None else self._forecast(known.budget)
        why = self._refused(known) or self._needless(step, trials)
        return Foreseen(told, tuple(known.command.argv()), None if why is None else said(why))

    def launch(self, step: Next) -> Launch:
        """What to start."""
        return msgspec.structs.replace(self._launch, command=self.at(step.point).command)

    def _budget(self, command: LaunchCommand) -> Budget:
        found = self._plan.budget
        given = given_of(command)
        given = msgspec.structs.replace(given, env={**given.env, **self._plan.env})
        return budget(resolve(given, release(self._launch.engine.version), found.model, found.cards), found.model,
                      found.cards)  # fmt: skip

    def _forecast(self, found: Budget) -> Forecast:
        on_cpu = found.tightest.card.vendor == "cpu"
        return Forecast(
            verdict=found.verdict,
            kv_tokens=found.capacity.kv_cache_tokens,
            holds=round(held(found, self._plan.wish), 2),
            free_gib=None if on_cpu else round(min(rank.headroom.value for rank in found.ranks), 2),
            needed_gib=None if on_cpu else round(reserve(found, found.tightest).total, 2),
            utilization=None if on_cpu else found.settings.gpu_memory_utilization,
        )

    def _refused(self, known: Foreknown) -> Message | None:
        """Why it cannot be started: vLLM or its memory forbids it."""
        facts = LintFacts(
            self._launch.engine.version, self.gpus, lambda _: self._plan.budget.model, lambda _: self._table
        )
        for found in run(registry.rules(Subject.COMMAND), context_of(known.command, facts), None).findings:
            if found.severity is Severity.ERROR:
                return msg("{code} {text}", code=found.rule.code, text=found.message)
        if known.budget is None:
            return None
        if known.budget.verdict != "fits":
            return known.budget.reasons[0] if known.budget.reasons else msg("it does not fit")
        short = 0.0 if known.budget.tightest.card.vendor == "cpu" else shortage(known.budget)
        if short > 0:
            free = min(rank.headroom.value for rank in known.budget.ranks)
            return msg(
                "{free:.2f} GiB would be free at the peak, and {need:.2f} are needed for what comes on top",
                free=free, need=free + short,
            )  # fmt: skip
        return None

    def _needless(self, step: Next, trials: Sequence[Trial]) -> Message | None:
        if step.knob is None:
            return None
        rounds: list[Round] = [r for one in trials if one.point == step.base for r in one.rounds]
        before, after = (self._space.value(point, step.knob) for point in (step.base, step.point))
        flag = self._space.knobs[step.knob].flag
        return idle(flag, before, after, self._offered, rounds, self._objective)


def with_values(command: LaunchCommand, changes: dict[str, tuple[Value, Value]]) -> LaunchCommand:
    """The command with the second of each flag's values."""
    for flag, (_, value) in changes.items():
        command = command.without_flag(flag).without_flag(f"no-{flag}")
        if value == "false":
            command = command.with_flag(f"no-{flag}")
        elif value is not None:
            command = command.with_flag(flag, None if value == "true" else value)
    return command


def values_of(command: LaunchCommand) -> dict[str, Value]:
    """Flag -> value of a command, as a space has them."""
    return {
        use.dotted: "false" if use.negated else use.value if use.value is not None else "true" for use in command.flags
    }


def tuned_plan(plan: Plan, known: Foreknown, why: Sequence[tuple[str, str, Message]]) -> Plan:
    """The plan with the best launch in place of its own; `why`: flag, value and reason of what was changed."""
    from trimtab.plan.estimate import estimate
    from trimtab.plan.reasons import Why

    changed = {flag: Why(flag, value, reason, "measured") for flag, value, reason in why}
    values = {f"--{flag}": value or "" for flag, value in values_of(known.command).items()}
    kept = [
        msgspec.structs.replace(one, value="" if values[one.flag] == "true" else values[one.flag])
        for one in plan.why
        if one.flag not in changed and values.get(one.flag) is not None
    ]
    kept += [one for one in plan.why if not one.flag.startswith("--")]
    found = known.budget or plan.budget
    wish = plan.wish
    told = estimate(found, wish.concurrency or 1, wish.input_tokens, wish.output_tokens)
    on_cpu = found.tightest.card.vendor == "cpu"
    return msgspec.structs.replace(
        plan, command=known.command, budget=found, why=(*kept, *changed.values()), estimate=told,
        reserve=None if on_cpu else reserve(found, found.tightest),
    )  # fmt: skip
