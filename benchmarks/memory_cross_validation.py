"""How well the memory model's fitted constants hold on records that did not set them.

Each constant is refitted without a record (or without all records of a card, release or model), and the records left
out are compared with what the constant so found predicts. Called by `memory_accuracy.py --cross-validate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from memory_cases import Case, source_of, version_of

from trimtab.plan.memory import activation, context, encoder, graphs

STEP = 0.01
"""Change of a constant from which a record's slope is read; small, so that the largest term stays the largest."""
Key = Callable[[Case], str]
GROUPS: Mapping[str, Key] = {
    "record": lambda c: str(c.row["id"]),
    "card": lambda c: c.budget.cards[0].name,
    "release": lambda c: ".".join(version_of(c.row).split(".")[:2]),
    "model": lambda c: c.budget.model.architecture,
}


@dataclass(frozen=True)
class Fitted:
    """A constant that records set. `place`: key of a dict, or index of a pair in a tuple of (release, GiB).

    `without`: what one would take had no record shown it; `unit`: what to divide by when it is printed.
    """

    module: ModuleType
    name: str
    without: float
    place: str | int | None = None
    term: str = "kv"
    unit: float = 1.0
    counted: bool = False
    """Whether it was counted or read rather than fitted: the refit then only shows that records agree."""

    @property
    def title(self) -> str:
        return self.name if self.place is None else f"{self.name}[{self.place}]"

    @property
    def value(self) -> float:
        held = getattr(self.module, self.name)
        if self.place is None:
            return float(held)
        return float(held[self.place] if isinstance(self.place, str) else held[self.place][1])

    def put(self, value: float) -> None:
        held: Any = getattr(self.module, self.name)
        if isinstance(self.place, str):
            value = {**held, self.place: value}  # type: ignore[assignment]
        elif self.place is not None:
            value = tuple((k, value if i == self.place else v) for i, (k, v) in enumerate(held))  # type: ignore[assignment]
        setattr(self.module, self.name, value)


MIB = float(1 << 20)
FITTED = (
    Fitted(context, "CONTEXT_SMALL_GIB", 0.51),
    Fitted(context, "LOADED_GIB", 0.0),
    Fitted(context, "LOADED_BY_RELEASE", 0.06, 0),
    Fitted(context, "LOADED_BY_RELEASE", 0.06, 1),
    Fitted(context, "LOADED_BY_RELEASE", 0.06, 2),
    Fitted(context, "LOADED_HOPPER_GIB", 0.06),
    Fitted(context, "LOADED_ROCM_GIB", 0.06),
    Fitted(context, "RESERVED_SLACK_GIB", 0.0),
    Fitted(context, "UNIFIED_HOST_GIB", 0.0),
    Fitted(context, "NCCL_GIB", 0.0),
    Fitted(context, "NCCL_PCIE_GIB", 0.0),
    Fitted(context, "NCCL_LATER_PCIE_GIB", 0.0),
    Fitted(activation, "FLOOR_GIB", 0.0),
    Fitted(activation, "V0_LOGIT_BYTES", 38),
    Fitted(activation, "SORTED_LOGIT_BYTES", 38, counted=True),
    Fitted(activation, "LOGIT_BYTES", 14, counted=True),
    Fitted(activation, "TRITON_PROGRAMS", 132, counted=True),
    Fitted(activation, "HYPER_STREAMS", 4),
    Fitted(encoder, "CROSS_WIDTHS", 10),
    Fitted(graphs, "LAYER_BYTES", 0.143 * MIB, term="graphs", unit=MIB),
    Fitted(graphs, "NCCL_LAYER_BYTES", 0.0, term="graphs", unit=MIB),
    Fitted(graphs, "PIECE_BYTES", 0.19 * MIB, term="graphs", unit=MIB),
    Fitted(graphs, "WHOLE_BYTES", 0.143 * MIB, "v1", "graphs", MIB),
    Fitted(graphs, "WHOLE_BYTES", 0.143 * MIB, "v2", "graphs", MIB),
    Fitted(graphs, "WORKSPACE_BYTES", 0.0, term="graphs", unit=MIB),
    Fitted(graphs, "UNIFIED_BYTES", 0.143 * MIB, unit=MIB),
)


@dataclass(frozen=True)
class Point:
    """A record's error in GiB (seen - predicted) at the constant's value, and its change per unit of the constant."""

    case: Case
    error: float
    slope: float


def error_of(case: Case, term: str) -> float | None:
    """Seen less predicted, GiB: KV cache (by its tokens where its size is not told, by the activation peak where
    neither is), or CUDA graphs."""
    seen = case.row["observed"]
    if term == "graphs":
        told = seen["cuda_graph_gib"]
        return None if told is None else told - case.predicted("graphs")
    if seen["available_kv_gib_per_gpu"] is not None:
        return float(seen["available_kv_gib_per_gpu"] - case.predicted("kv"))
    if seen["kv_cache_tokens"]:
        return (seen["kv_cache_tokens"] / case.predicted("tokens") - 1) * case.budget.tightest.kv_cache.value
    if seen["activation_peak_gib"] is not None:
        return case.predicted("activation") - float(seen["activation_peak_gib"])
    return None


def points(fitted: Fitted, cases: Sequence[Case], again: Callable[[Case], Case]) -> list[Point]:
    """The records that the constant moves."""
    value = fitted.value
    fitted.put(value * (1 + STEP))
    moved = [again(case) for case in cases]
    fitted.put(value)
    found = []
    for case, other in zip(cases, moved, strict=True):
        error, there = error_of(case, fitted.term), error_of(other, fitted.term)
        if error is not None and there is not None and abs(there - error) > 1e-6:
            found.append(Point(case, error, (there - error) / (value * STEP)))
    return found


def refit(found: Iterable[Point], value: float) -> float | None:
    """The constant with the least sum of absolute errors: a weighted median of the values that suit each record."""
    suits = sorted((value - p.error / p.slope, abs(p.slope)) for p in found)
    half = sum(w for _, w in suits) / 2
    passed = 0.0
    for at, weight in suits:
        passed += weight
        if passed >= half:
            return max(0.0, at)
    return None


def left_out(fitted: Fitted, found: Sequence[Point], key: Key) -> list[tuple[Point, float]]:
    """Each record with the constant as the records outside its group set it."""
    done = []
    for point in found:
        rest = [p for p in found if key(p.case) != key(point.case)]
        at = refit(rest, fitted.value)
        done.append((point, fitted.without if at is None else at))
    return done


def cross_validate(cases: Sequence[Case], again: Callable[[Case], Case]) -> None:
    """Print every constant with its refits, and the KV error of records by constants that they did not set."""
    shifts: dict[str, dict[str, float]] = {name: {} for name in GROUPS}
    print("\nfitted constants: value, refitted, range of the refits; then the median / largest error in GiB of the "
          "records that\nit moves: as it stands, and with the record, its card, release or model left out")  # fmt: skip
    print(f"{'':26}{'value':>8}{'refit':>8}{'range':>16}{'stands':>14}" + "".join(f"{n:>14}" for n in GROUPS))
    for fitted in FITTED:
        found = points(fitted, cases, again)
        best = refit(found, fitted.value)
        told = fitted.value if best is None else best
        cells = [spread(abs(p.error) for p in found)]
        ranges: list[float] = []
        for name, key in GROUPS.items():
            outs = left_out(fitted, found, key)
            cells.append(spread(abs(p.error + p.slope * (at - fitted.value)) for p, at in outs))
            ranges += [at / fitted.unit for _, at in outs]
            for point, at in outs:
                if fitted.term == "kv" and not fitted.counted:
                    held = shifts[name]
                    identity = point.case.row["id"]
                    held[identity] = held.get(identity, 0.0) + point.slope * (at - told)
        refitted = "-" if best is None else f"{best / fitted.unit:.3g}"
        span = f"{min(ranges):.3g} to {max(ranges):.3g}" if ranges else "-"
        print(f"{fitted.title:26}{fitted.value / fitted.unit:8.3g}{refitted:>8}{span:>16}"
              + "".join(f"{c:>14}" for c in cells))  # fmt: skip
        print(f"{'  (counted)' if fitted.counted else '':26}{len(found)} records: {named(found)}")
    overall(cases, shifts)


def named(found: Sequence[Point]) -> str:
    ids = [str(p.case.row["id"]).removeprefix("h200-026-") for p in found]
    return ", ".join(ids[:9]) + (", ..." if len(ids) > 9 else "")


def overall(cases: Sequence[Case], shifts: Mapping[str, Mapping[str, float]]) -> None:
    print("\nKV cache, relative error in percent and share of the card (median / 90th percentile), with what every "
          "constant's refit\nchanges when the record, its card, release or model is left out of it")  # fmt: skip
    for source in sorted({source_of(c.row) for c in cases}):
        chosen = [c for c in cases if source_of(c.row) == source]
        chosen = [
            c for c in chosen if c.row["observed"]["available_kv_gib_per_gpu"] or c.row["observed"]["kv_cache_tokens"]
        ]
        cells = [both(chosen, {})] + [both(chosen, shifts[name]) for name in GROUPS]
        print(f"{source:22}{len(chosen):4}" + "".join(f"{c:>26}" for c in cells))


def both(cases: Sequence[Case], shift: Mapping[str, float]) -> str:
    relative, share = [], []
    for case in cases:
        error = error_of(case, "kv")
        assert error is not None
        error += shift.get(case.row["id"], 0.0)
        seen = case.row["observed"]["available_kv_gib_per_gpu"] or case.budget.tightest.kv_cache.value
        relative.append(abs(error) / max(abs(seen), 1.0) * 100)
        share.append(abs(error) / case.budget.cards[0].total_gib * 100)
    return f"{ranks(relative)} {ranks(share)}"


def ranks(values: Sequence[float]) -> str:
    found = sorted(values)
    return f"{found[(len(found) - 1) // 2]:.2f}/{found[int(0.9 * (len(found) - 1))]:.2f}"


def spread(values: Iterable[float]) -> str:
    found = sorted(values)
    return f"{found[(len(found) - 1) // 2]:.2f} / {found[-1]:.2f}" if found else "-"
