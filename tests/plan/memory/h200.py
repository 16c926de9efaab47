"""Starts recorded on H200 cards (benchmarks/data), and the memory model's word on each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from trimtab.facts.model import read_model
from trimtab.plan.memory import Budget, Card, Given, budget, release, resolve

DATA = Path(__file__).parents[3] / "benchmarks" / "data"


def rows(name: str) -> list[dict[str, Any]]:
    """The records of a file of benchmarks/data."""
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def predict(row: dict[str, Any], *, compile_cache: bool = False) -> Budget:
    """The budget of a recorded start; `compile_cache`: what torch.compile made was there already."""
    model = read_model(json.loads((DATA / "configs" / f"{row['model']}.json").read_text()))
    cards = [Card("H200", 139.8, 9.0, nvlink=True)] * row["gpu_count"]
    flags = {k: v for k, v in row["flags"].items() if k not in ("other", "compilation_config")}
    flags |= row["flags"].get("compilation_config", {})
    env = dict(re.findall(r"(\w+)=(\w+)", row["flags"].get("other", "")))
    settings = resolve(Given(flags, env, usage="llm"), release(row["vllm_version"]), model, cards)
    settings = replace(settings, compile_cache=compile_cache, flashinfer=False, flashinfer_sampler=False)
    return budget(settings, model, cards)


def error(row: dict[str, Any], found: Budget, term: str) -> float | None:
    """Relative error of a term; None where the log did not tell it."""
    seen = row["observed"][term]
    if seen is None:
        return None
    rank = found.tightest
    value: float = {
        "weights_gib_per_gpu": rank.weights.value, "activation_peak_gib": rank.activation.value,
        "available_kv_gib_per_gpu": rank.kv_cache.value, "cuda_graph_gib": rank.graphs.value,
        "kv_cache_tokens": found.capacity.kv_cache_tokens,
    }[term]  # fmt: skip
    return abs(value / seen - 1)
