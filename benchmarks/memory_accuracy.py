"""How far the memory model is from what vLLM reported: medians and 90th percentiles by source, version, kind and GPU.

Usage: python benchmarks/memory_accuracy.py [--rows] [--cross-validate]
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable, Iterable, Sequence

from memory_cases import OBSERVED, TERMS, Case, again, predict, reasons, records, source_of, version_of
from memory_cross_validation import cross_validate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", action="store_true", help="print every record")
    parser.add_argument(
        "--cross-validate", action="store_true", help="refit each constant without the records it meets"
    )
    options = parser.parse_args()
    rows = list(records())
    excluded = reasons("excluded.csv")
    cases, out = predict(rows, excluded)
    left = sum(row["id"] in excluded for row, _ in out)
    total = len(cases) + left
    print(f"{len(rows)} records; {total} are counted: release known to the minor, known card and model, no fork")
    print(f"{len(cases)} predicted, {left} left out with a reason in excluded.csv ({left / total:.0%})")
    print(f"flags that are the version's defaults: {sum(c.null_flags for c in cases)}")
    speed(cases)
    tables(cases)
    verdicts(cases)
    worst(cases)
    if options.cross_validate:
        cross_validate(cases, again)
    if options.rows:
        for case in cases:
            print(line(case))
        for row, reason in out:
            print(f"left out {row['id']}: {reason}")


def speed(cases: Sequence[Case]) -> None:
    """Milliseconds of one budget in process, the best of three."""
    took = sorted(min(timeit.repeat(lambda c=case: again(c), number=1, repeat=3)) * 1000 for case in cases)  # type: ignore[misc]
    print(f"one budget takes {took[len(took) // 2]:.2f} ms (median), {took[-1]:.2f} ms at most")


def tables(cases: Sequence[Case]) -> None:
    groups: tuple[tuple[str, Callable[[Case], str]], ...] = (
        ("all", lambda c: "all"),
        ("source", lambda c: source_of(c.row)),
        ("version", lambda c: ".".join(version_of(c.row).split(".")[:2])),
        ("attention", lambda c: c.kind),
        ("gpu", lambda c: c.budget.cards[0].name),
    )
    for title, key in groups:
        print(f"\n{title:22}" + "".join(f"{t:>22}" for t in (*TERMS, "kv/card")))
        for name in sorted({key(c) for c in cases}):
            chosen = [c for c in cases if key(c) == name]
            cells = [summary([c.error(t) for c in chosen]) for t in TERMS]
            print(f"{name:22}" + "".join(f"{x:>22}" for x in (*cells, summary([c.share_of_card() for c in chosen]))))


def summary(errors: Iterable[float | None]) -> str:
    """ "n: median / 90th percentile" of absolute errors in percent."""
    found = sorted(abs(e) * 100 for e in errors if e is not None)
    if not found:
        return "-"
    return f"{len(found)}: {found[(len(found) - 1) // 2]:.2f} / {found[int(0.9 * (len(found) - 1))]:.2f}"


def verdicts(cases: Sequence[Case]) -> None:
    """Failed starts and successful ones against the verdict."""
    wrong: list[str] = []
    starts = [c for c in cases if not c.row["observed"]["startup_error"]]
    failed = [c for c in cases if c.row["observed"]["startup_error"]]
    right = sum(verdict_right(c) for c in cases)
    for case in cases:
        if not verdict_right(case):
            wrong.append(f"  {case.row['id']}: {case.budget.verdict}, was {case.row['observed']['startup_error']}")
    called = sum(c.budget.verdict in ("fits", "unsafe_headroom") for c in starts)
    print(f"\nverdicts: {right} of {len(cases)} right; {called} of {len(starts)} starts called startable; "
          f"{sum(c.budget.verdict == 'fits' for c in failed)} of {len(failed)} failures called fits")  # fmt: skip
    print("\n".join(wrong))


def verdict_right(case: Case) -> bool:
    seen = case.row["observed"]["startup_error"]
    if seen is None:
        return case.budget.verdict in ("fits", "unsafe_headroom")
    return case.budget.verdict == {"oom_runtime_after_graph": "oom_cuda_graph"}.get(seen, seen)


def worst(cases: Sequence[Case]) -> None:
    for term in ("weights", "kv", "tokens", "activation"):
        ranked = sorted((c for c in cases if c.error(term) is not None), key=lambda c: -abs(c.error(term) or 0))
        print(f"\nten worst: {term}")
        for case in ranked[:10]:
            seen = case.row["observed"][OBSERVED[term]]
            print(f"  {case.row['id']:22} {case.row['model'][:40]:42} {seen:>12} {case.predicted(term):12.3f} "
                  f"{100 * (case.error(term) or 0):8.1f}%  {case.row['notes'][:90]}")  # fmt: skip


def line(case: Case) -> str:
    s = case.budget.settings
    cells = [
        f"{t} {case.row['observed'][OBSERVED[t]]}->{case.predicted(t):.3f} ({100 * (case.error(t) or 0):+.1f}%)"
        for t in TERMS
        if case.row["observed"][OBSERVED[t]] is not None
    ]
    return (
        f"{case.row['id']:10} {case.row['model'][:36]:36} {s.version} {s.engine} {s.runner} tp{s.tensor_parallel_size} "
        f"T{s.max_num_batched_tokens} S{s.max_num_seqs} {case.budget.verdict}: " + "; ".join(cells)
    )


if __name__ == "__main__":
    main()
