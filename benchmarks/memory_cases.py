"""Recorded starts of vLLM, read from `data/`, each with what the memory model predicts for it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from trimtab.errors import ModelError
from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.gpu import parse_gpus
from trimtab.facts.model import ModelFacts, read_model
from trimtab.plan.memory import Budget, Card, Given, Rank, budget, cards_of, release, resolve

DATA = Path(__file__).parent / "data"
TERMS = ("weights", "kv", "tokens", "activation", "graphs")
OBSERVED = {
    "weights": "weights_gib_per_gpu", "kv": "available_kv_gib_per_gpu", "tokens": "kv_cache_tokens",
    "activation": "activation_peak_gib", "graphs": "cuda_graph_gib",
}  # fmt: skip

UNSLOTH_LORA_RANK = 64
"""`max_lora_rank` of unsloth's FastLanguageModel.from_pretrained."""


@dataclass(frozen=True)
class Case:
    """A record that could be predicted, with what was predicted for it."""

    row: Mapping[str, Any]
    model: ModelFacts
    """As its checkpoint stores it."""
    budget: Budget
    kind: str
    null_flags: int

    def predicted(self, term: str) -> float:
        """The prediction; of several ranks, the one nearest to the record, which does not say whose line it quotes."""
        if term == "tokens":
            return float(self.budget.capacity.kv_cache_tokens)
        seen = self.row["observed"].get(OBSERVED[term])
        values = [_of_rank(rank, term) for rank in self.budget.ranks]
        return min(values, key=lambda v: abs(v - seen)) if seen is not None else min(values)

    def error(self, term: str) -> float | None:
        """Relative error; None when the term was not observed. KV below zero is compared with 1 GiB."""
        seen = self.row["observed"].get(OBSERVED[term])
        if seen is None:
            return None
        return (self.predicted(term) - seen) / max(abs(seen), 1e-9 if term != "kv" else 1.0 if seen < 0 else 1e-9)

    def share_of_card(self) -> float | None:
        """KV error as a share of the card's total memory."""
        seen = self.row["observed"].get(OBSERVED["kv"])
        return None if seen is None else (self.predicted("kv") - seen) / self.budget.cards[0].total_gib


def _of_rank(rank: Rank, term: str) -> float:
    terms = {"weights": rank.weights, "kv": rank.kv_cache, "activation": rank.activation, "graphs": rank.graphs}
    return terms[term].value


def records() -> Iterable[Mapping[str, Any]]:
    for file in sorted(DATA.glob("*.jsonl")):
        for row in map(json.loads, file.read_text().splitlines()):
            if "observed" in row:
                yield row | {"file": file.stem}


def source_of(row: Mapping[str, Any]) -> str:
    return {"public": "public reports", "h200": "H200, given"}.get(row["file"], "measured for Trimtab")


def reasons(name: str) -> Mapping[str, str]:
    """Record -> reason, of excluded.csv (left out), warm.csv (starts that found a filled compile cache) or
    offline.csv (starts of the LLM class, whose defaults differ)."""
    with (DATA / name).open() as stream:
        return {row["id"]: row["reason"] for row in csv.DictReader(stream)}


def predict(
    rows: Sequence[Mapping[str, Any]], excluded: Mapping[str, str]
) -> tuple[list[Case], list[tuple[Mapping[str, Any], str]]]:
    cases: list[Case] = []
    warm = reasons("warm.csv")
    out: list[tuple[Mapping[str, Any], str]] = []
    for row in rows:
        reason = unfit(row) or excluded.get(row["id"])
        model = None if reason else model_of(row["model"])
        if reason or model is None:
            out.append((row, reason or f"no facts of {row['model']}"))
            continue
        flags = {k: v for k, v in row["flags"].items() if v is not None and k != "other"}
        given = given_of(row, flags)
        cards = gpus_of(row)
        settings = resolve(given, release(version_of(row)), model, cards)
        settings = replace(settings, compile_cache=row["id"] in warm)
        if "FlashInfer absent" in row["notes"]:
            settings = replace(settings, flashinfer=False, flashinfer_sampler=False)
        nulls = sum(v is None for k, v in row["flags"].items() if k != "other")
        cases.append(Case(row, model, budget(settings, model, cards), kind_of(model), nulls))
    return cases, out


def again(case: Case) -> Case:
    """The same start predicted anew, after a constant was changed."""
    made = case.budget
    return changed(case, budget=budget(made.settings, case.model, made.cards))


def given_of(row: Mapping[str, Any], flags: dict[str, Any]) -> Given:
    """Flags of a record; what its free text says of expert and data parallelism, towers and drafts is read too."""
    other = str(row["flags"].get("other") or "").lower()
    if "expert parallel" in other:
        flags["enable_expert_parallel"] = True
    if found := re.search(r"data_parallel_size (\d+)", other):
        flags["data_parallel_size"] = int(found[1])
    if "language-model-only" in other:
        flags["language_model_only"] = True
    if "skip_mm_profiling" in other:
        flags["skip_mm_profiling"] = True
    if found := re.search(r"mtp.*?(\d+)[ -]token|mtp (\d+)|mtp speculative, (\d+) token", other):
        flags["speculative_config"] = {
            "method": "mtp",
            "num_speculative_tokens": int(next(filter(None, found.groups()))),
        }
    elif "mtp speculative" in other:
        flags["speculative_config"] = {"method": "mtp", "num_speculative_tokens": 1}
    if "tp2 presumably" in row["notes"].lower():
        flags["tensor_parallel_size"] = 2
    flags |= flags.pop("compilation_config", {})
    env = {"VLLM_USE_V1": "0" if row["engine"] == "V0" else "1"}
    if found := re.search(r"layer partition ([\d,]+)", other):
        env["VLLM_PP_LAYER_PARTITION"] = found[1]
    if "eagle draft head" in other:
        flags["speculative_config"] = {"method": "eagle", "num_speculative_tokens": 1}
    if found := re.search(r"max_num_batched_tokens resolved (\d+)", other):
        flags["max_num_batched_tokens"] = int(found[1])
    env |= dict(re.findall(r"(VLLM_\w+)=(\w+)", str(row["flags"].get("other") or "")))
    if "estimate_cudagraphs=0" in str(row["vllm_version"]).lower():
        env["VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"] = "0"
    if "lora enabled (unsloth)" in other:
        flags |= {"enable_lora": True, "max_lora_rank": UNSLOTH_LORA_RANK}
    served = row["file"] == "public" or "vllm serve" in row["notes"]
    offline = not served or row["id"] in reasons("offline.csv")
    return Given(flags, env, "llm" if offline or "offline" in row["notes"].lower() or "unsloth" in other else "server")


def version_of(row: Mapping[str, Any]) -> str:
    """The record's release; of a range, the last ("0.9.2..0.10.0"); the newest when there is none."""
    text = str(row["vllm_version"] or "")
    found = re.findall(r"\d+\.\d+(?:\.\d+)?", text.replace(".x", ".9"))
    return str(found[-1] if ".." in text else found[0]) if found else "0.33"


def unfit(row: Mapping[str, Any]) -> str:
    """Why a record is not of the kind that is counted; empty when it is."""
    text = str(row["vllm_version"] or "")
    minors = {tuple(m.split(".")[:2]) for m in re.findall(r"\d+\.\d+(?:\.\d+)?", text.split("(")[0])}
    if "fork" in text.lower() or "fork" in str(row["notes"]).lower():
        return "a fork"
    if len(minors) != 1 or text.startswith(">"):
        return "version not known to the minor"
    return ""


def gpus_of(row: Mapping[str, Any]) -> list[Card]:
    """The record's cards, with the total that its log showed where it did."""
    found = cards_of(parse_gpus(row["gpu"]))
    cards = list(found) if len(found) == row["gpu_count"] else [found[0]] * row["gpu_count"]
    total = row["gpu_total_gib_reported"]
    return [replace(c, total_gib=total) for c in cards] if total else cards


def model_of(name: str) -> ModelFacts | None:
    index = json.loads((DATA / "models.json").read_text())
    entry = index.get(name) or ({"config": name} if (DATA / "configs" / f"{name}.json").exists() else None)
    if entry is None:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
            return None  # a build that the record describes but does not name
        with suppress(ModelError):
            return find_model(name).facts()
        return None
    config = json.loads((DATA / "configs" / f"{entry['config']}.json").read_text())
    facts = read_model({**config, **entry.get("set", {})})
    return facts if facts.layers and not any("architecture" in m for m in facts.missing) else None


def kind_of(model: ModelFacts) -> str:
    if any(x.recurrent for x in model.layers):
        return "hybrid"
    attention = next(x.attention for x in model.layers if x.attention)
    if attention.kv_lora_rank is not None:
        return "MLA"
    if any(x.attention and x.attention.window for x in model.layers):
        return "sliding"
    return ("MoE " if any(x.moe for x in model.layers) else "") + attention.kind.upper()
