"""`trimtab tune` against a full grid on the real CPU engine: how many starts each takes, and what each finds.

    python benchmarks/tune_grid.py --make DIR --like MODEL                # a tiny model with MODEL's tokenizer
    python benchmarks/tune_grid.py --run DIR --engine-python PYTHON       # measures the grid, one start a point
    python benchmarks/tune_grid.py                                        # replays the search over what was measured

The grid is measured in an order drawn from the seed, so that a machine that gets busier does not favour one corner.
`--lock FILE` is held for `--hold` seconds and one start at least, so that others take turns. A run goes on where it
was.

The model has two layers of 128 and vLLM's dummy weights: a real one spends its time in products of matrices on a CPU,
and what these flags change would be noise beside that.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import msgspec
import psutil

from trimtab.bench.tuning.objective import Round
from trimtab.bench.tuning.policy import Next, Result, another_round, search
from trimtab.bench.tuning.space import Knob, Point, Space
from trimtab.cli.launch import Wanted, launch_of
from trimtab.cli.notes import Notes
from trimtab.cli.subject import resolve_subject
from trimtab.cli.tune import Asked, Tuning
from trimtab.cli.up import LOOPBACK, Place
from trimtab.supervisor.stopping import stop_on_signals

ROWS = Path(__file__).with_name("data") / "tune_grid.jsonl"
TRIED = ("max-num-seqs=2,4,8,16", "max-num-batched-tokens=128,512,2048", "async-scheduling=off,false")
CONTEXT, AT_ONCE, INPUT, OUTPUT = 512, 16, 64, 32
ROUNDS, ROUND_S, LEAST = 4, 5.0, 2
SEED = 8
GIVEN_S = 2.0
"""Until the lock is asked for again: whoever waits for it on a busy machine needs a moment to wake up."""
FIXED = ["--enforce-eager", "--load-format", "dummy"]
PINNED = ("enforce-eager", "load-format")
TINY = {
    "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 64,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", type=Path, metavar="DIR")
    parser.add_argument("--like", type=Path, metavar="MODEL")
    parser.add_argument("--run", metavar="MODEL")
    parser.add_argument("--engine-python", type=Path)
    parser.add_argument("--lock", type=Path)
    parser.add_argument("--hold", type=float, default=1.0, help="seconds after which the lock is given away")
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--begin", type=int, default=0, help="which point of the order: for a second run beside it")
    told = parser.parse_args()
    if told.make:
        make(told.like, told.make)
        return
    if told.run:
        measure(told)
    replay(told.rows)


def make(like: Path, where: Path) -> None:
    """All files of a Llama but its weights; its shape is TINY."""
    where.mkdir(parents=True)
    for file in like.iterdir():
        if file.suffix != ".safetensors" and file.name not in ("config.json", "manifest.json"):
            shutil.copy(file, where)
    config = msgspec.json.decode((like / "config.json").read_bytes())
    (where / "config.json").write_bytes(msgspec.json.encode(config | TINY))


def measure(told: argparse.Namespace) -> None:
    """One start for each point of the grid that has no row yet."""
    launch = launch_of(
        resolve_subject(told.run, FIXED),
        Wanted(None, told.engine_python, CONTEXT, AT_ONCE, (), INPUT, OUTPUT, "throughput"),
        Notes("en"),
    )
    asked = Asked("throughput", None, TRIED, PINNED, False, ROUNDS, ROUND_S, SEED)
    tuning = Tuning(launch, Place(f"tune-grid-{os.getpid()}", LOOPBACK, None, (), share=False), asked)
    space = tuning.knobs.space
    points = list(itertools.product(*(range(len(knob.values)) for knob in space.knobs)))
    random.Random(SEED).shuffle(points)
    points = points[told.begin :] + points[: told.begin]
    while True:
        with locked(told.lock):
            began = time.monotonic()
            while began + told.hold > time.monotonic():
                done = {tuple(row["point"]) for row in read(told.rows)}
                point = next((one for one in points if one not in done), None)
                if point is None:
                    return
                with stop_on_signals() as tuning.stop:
                    row = measured(tuning, space, point)
                if tuning.stop.times:
                    return
                with told.rows.open("ab") as out:
                    out.write(msgspec.json.encode(row) + b"\n")


def measured(tuning: Tuning, space: Space, point: Point) -> dict[str, Any]:
    """A row: every round's rate, and what it took of the CPU, which hardly depends on who else uses the machine."""
    spent: list[float] = []

    def more(rounds: Sequence[Round]) -> bool:
        spent.append(cpu_s())
        return len(rounds) <= ROUNDS

    step = Next(point, space.start, None)
    seen = tuning.foresee(step, ())
    came = tuning.start(step, seen, 1, more, 900.0)
    took = [b - a for a, b in itertools.pairwise(spent[1:])]
    return {
        "point": point, "flags": space.flags(point), "kind": came.kind, "ready_s": came.ready_s, "took_s": came.took_s,
        "cause": came.cause, "started": came.started, "load": round(os.getloadavg()[0], 1),
        "rounds": [
            {"output_tokens_s": round(r.output_tokens_s, 2), "cpu_s": round(cpu, 2),
             "tokens_per_cpu_s": round(r.output_tokens_s * r.span_s / cpu, 3)}
            for r, cpu in zip(came.rounds[1:], took, strict=False)
        ],
    }  # fmt: skip


def cpu_s() -> float:
    """CPU seconds of the engine so far: of all that descends from this process."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            used = process.cpu_times()
        except psutil.Error:
            continue
        total += used.user + used.system
    return total


@contextmanager
def locked(file: Path | None) -> Iterator[None]:
    if file is None:
        yield
        return
    with file.open("a") as held:
        flock(held, LOCK_EX)
        yield
    time.sleep(GIVEN_S)


def read(file: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()] if file.exists() else []


def replay(file: Path) -> None:
    """The search from every point of the grid, on the rounds that were measured there."""
    rows = [row for row in read(file) if row["kind"] == "measured"]
    size = space_of(rows).size if rows else None
    if len(rows) != size:
        raise SystemExit(f"{file} holds {len(rows)} measured starts of {size or 'a grid'}")
    for what in ("output_tokens_s", "tokens_per_cpu_s"):
        values = {tuple(row["point"]): [r[what] for r in row["rounds"]] for row in rows}
        space = space_of(rows)
        best = max(statistics.fmean(v) for v in values.values())
        ends = [found(space, values, start) for start in values]
        within = sum(mean >= 0.98 * best for _, mean in ends)
        starts = [count for count, _ in ends]
        count, mean = found(space, values, (len(space.knobs[0].values) - 1, len(space.knobs[1].values) - 1, 0))
        print(f"{what}: {len(rows)} of {space.size} starts measured, best {best:.2f}")
        print(f"  from the plan: {count} starts, {mean:.2f}, {100 * mean / best:.1f}% of the best")
        print(f"  from every point: {statistics.fmean(starts):.1f} starts on average, {max(starts)} at most; "
              f"{within} of {len(ends)} within 2% of the best")  # fmt: skip


def space_of(rows: Sequence[dict[str, Any]]) -> Space:
    names = list(rows[0]["flags"])
    knobs = []
    for at, name in enumerate(names):
        values = {row["point"][at]: row["flags"][name] for row in rows}
        ordered = all(v is not None and v.isdigit() for v in values.values())
        knobs.append(Knob(name, tuple(values[n] for n in sorted(values)), ordered))
    return Space(tuple(knobs), (0,) * len(knobs))


def found(space: Space, values: dict[Point, list[float]], start: Point) -> tuple[int, float]:
    """Starts, and the mean of what was found. A second start of a launch gives its rounds in another order."""
    space = msgspec.structs.replace(space, start=start)
    source, results = random.Random(SEED), list[Result]()
    while isinstance(step := search(space, results).step, Next):
        if step.point not in values:
            results.append(Result(step.point, "failed"))
            continue
        rounds = values[step.point].copy()
        source.shuffle(rounds)
        taken: list[float] = []
        while len(taken) < len(rounds) and another_round(space, results, step, taken, LEAST):
            taken.append(rounds[len(taken)])
        results.append(Result(step.point, "measured", tuple(taken)))
    return len(results), statistics.fmean(values[step.best])


if __name__ == "__main__":
    main()
