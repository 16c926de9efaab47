"""A measurement as JSON Lines: a head, a row per request, a row per look at the server, the summary at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.bench.measure import Measured, Plan
from trimtab.engine.bottleneck import Look

SCHEMA = "trimtab.bench/1"


def lines(measured: Measured, version: str) -> Iterator[bytes]:
    """The rows, each with its line feed; `kind` says which it is; `version`: Trimtab's. No key, no prompt."""
    head = {
        "kind": "run", "schema": SCHEMA, "trimtab": version, "url": measured.url, "model": measured.model,
        "started": measured.started, **plan_values(measured.plan), "exact_lengths": measured.exact_lengths,
        "exact_output": measured.exact_output, "engine": measured.engine,
    }  # fmt: skip
    yield _line(head)
    for row in measured.outcome.rows:
        yield _line({"kind": "request", **msgspec.to_builtins(row)})
    for look in measured.outcome.looks:
        yield _line(look_values(look))
    yield _line(summary_values(measured))


def plan_values(plan: Plan) -> dict[str, Any]:
    """What was asked for."""
    shape = plan.shape
    return {
        "input": str(shape.input), "output": str(shape.output), "prefix_tokens": shape.prefix_tokens,
        "prefixes": shape.prefixes, "turns": shape.turns, "images": shape.images, "load": plan.load,
        "trace": len(plan.trace) or None, "seed": plan.seed, "targets": plan.targets, "sampling": plan.sampling,
    }  # fmt: skip


def look_values(look: Look) -> dict[str, Any]:
    """One look at the server's counters."""
    vitals = look.vitals
    names = ("running", "waiting", "kv_usage", "preemptions", "generated", "prompted", "hits", "queries")
    return {"kind": "look", "at_s": look.at, **{name: getattr(vitals, name, None) for name in names}}


def summary_values(measured: Measured) -> dict[str, Any]:
    """The figures."""
    outcome = measured.outcome
    return {
        "kind": "summary", "interrupted": outcome.interrupted, "notes": outcome.notes,
        "client_cpu_share": measured.client_cpu_share, **msgspec.to_builtins(measured.summary),
        "server": server_values(outcome.looks),
    }  # fmt: skip


def server_values(looks: tuple[Look, ...]) -> dict[str, Any] | None:
    """What the server's own counters did over the run; None where it has none."""
    seen = [look.vitals for look in looks if look.vitals is not None]
    if len(seen) < 2:
        return None
    first, last = seen[0], seen[-1]
    grown = {
        name: b - a
        for name in ("preemptions", "generated", "prompted", "hits", "queries")
        if (a := getattr(first, name)) is not None and (b := getattr(last, name)) is not None
    }
    most = {
        f"most_{name}": max(values)
        for name in ("running", "waiting", "kv_usage")
        if (values := [v for one in seen if (v := getattr(one, name)) is not None])
    }
    return grown | most


def _line(value: Any) -> bytes:
    return msgspec.json.encode(value) + b"\n"
