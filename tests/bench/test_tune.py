"""The loop over a simulated machine: journal, budget, interruption, and that it goes on where it was."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.bench.tuning.test_policy import GRID, hill
from trimtab.bench.tune import Foreseen, Measured, More, Tuned, tune
from trimtab.bench.tuning.objective import Round
from trimtab.bench.tuning.policy import Next
from trimtab.bench.tuning.trials import SCHEMA, Head, Trial, Trials, said
from trimtab.errors import HostError, UsageError
from trimtab.messages import msg

SURFACE = hill((5, 4, 1))
TOOK_S = 60.0


class Machine:
    """Starts take a minute of a clock that nobody waits for; `stops_at`: the start in which Ctrl-C comes."""

    def __init__(self, budget_s: float = 1e9, stops_at: int = 0) -> None:
        self.left_s, self.stops_at, self.starts, self.stopped = budget_s, stops_at, 0, False
        self._source = random.Random(1)

    def foresee(self, step: Next, trials: Sequence[Trial]) -> Foreseen:
        full = msg("{n} is too large", n=step.point[0]) if step.point[0] == 5 else None
        return Foreseen(None, ("vllm",), said(full) if full is not None else None)

    def start(self, step: Next, seen: Foreseen, number: int, more: More, left_s: float) -> Measured:
        self.starts += 1
        spent = min(TOOK_S, self.left_s)
        self.left_s -= spent
        self.stopped = self.starts == self.stops_at
        if self.stopped or spent < TOOK_S:
            return Measured(kind="cut", took_s=spent)
        rounds: list[Round] = []
        while more(rounds):
            rate = SURFACE(step.point) * self._source.gauss(1, 0.01)  # type: ignore[operator]
            rounds.append(Round(requests=9, span_s=1, output_tokens_s=rate, total_tokens_s=rate, requests_s=1))
        return Measured(kind="measured", rounds=tuple(rounds), took_s=spent)


def run(file: Path, machine: Machine, **arguments: object) -> Tuned:
    journal = Trials(file, Head(schema=SCHEMA, arguments={"seed": 0, **arguments}))
    try:
        return tune(GRID, "throughput", journal, machine, lambda: machine.left_s, 3, lambda: machine.stopped)
    finally:
        journal.close()


def test_runs_to_its_end_and_starts_nothing_that_is_foreseen_to_fail(tmp_path: Path) -> None:
    machine = Machine()
    found = run(tmp_path / "j.jsonl", machine)
    assert found.ending == "settled"
    assert found.search.best == (4, 4, 1)
    skipped = [one for one in found.trials if one.kind == "skipped"]
    assert [str(one.cause.message()) for one in skipped if one.cause] == ["5 is too large"] * len(skipped)
    assert machine.starts == sum(one.kind == "measured" for one in found.trials)


def test_a_second_run_starts_nothing(tmp_path: Path) -> None:
    first = run(tmp_path / "j.jsonl", Machine())
    machine = Machine()
    assert run(tmp_path / "j.jsonl", machine) == first
    assert machine.starts == 0


@pytest.mark.parametrize("at", [1, 2, 5])
def test_goes_on_after_an_interruption(tmp_path: Path, at: int) -> None:
    stopped = run(tmp_path / "j.jsonl", Machine(stops_at=at))
    assert (stopped.ending, stopped.trials[-1].kind) == ("interrupted", "cut")
    found = run(tmp_path / "j.jsonl", Machine())
    assert found.search.best == (4, 4, 1)
    numbers = [one.number for one in found.trials if one.kind != "cut"]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_budget_ends_it_between_two_starts(tmp_path: Path) -> None:
    found = run(tmp_path / "j.jsonl", Machine(budget_s=3.5 * TOOK_S))
    assert found.ending == "budget"
    assert [one.kind for one in found.trials if one.kind != "skipped"] == ["measured"] * 3


def test_the_budget_ends_a_first_start_that_takes_longer(tmp_path: Path) -> None:
    found = run(tmp_path / "j.jsonl", Machine(budget_s=0.5 * TOOK_S))
    assert (found.ending, [one.kind for one in found.trials]) == ("budget", ["cut"])


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_left_out(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "j.jsonl"
    whole = run(file, Machine())
    file.write_bytes(file.read_bytes()[:-cut])
    machine = Machine()
    assert run(file, machine).search.best == whole.search.best
    assert machine.starts <= 1


def test_other_arguments_are_refused_by_name(tmp_path: Path) -> None:
    run(tmp_path / "j.jsonl", Machine(stops_at=1))
    with pytest.raises(UsageError, match="other arguments: seed was 0, now 1"):
        run(tmp_path / "j.jsonl", Machine(), seed=1)


def test_a_full_disk_is_one_error() -> None:
    with pytest.raises(HostError, match=r"cannot write the trials to /dev/full: No space left"):
        run(Path("/dev/full"), Machine())


def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "j.jsonl"
    file.write_text("{}\n")
    with pytest.raises(UsageError, match="no journal of a tuning"):
        run(file, Machine())
    assert file.read_text() == "{}\n"


def test_messages_come_back_in_the_readers_language() -> None:
    inner = said(msg("failed: {why}", why=msg("interrupted")))
    assert inner.values == {"why": "interrupted"}
    assert inner.message().template == "failed: {why}"
