"""What all tables together say: the history of each flag and variable, and groups for versions that had none."""

from __future__ import annotations

from collections.abc import Sequence

from .records import Record

WATCHED = ("default", "choices", "kind", "values", "deprecated", "no_op")


# Flags that no version of vLLM puts into a group, by their first words.
UNGROUPED = {
    "front end": ("model_tag", "--config", "--api-server-count", "--headless", "--grpc", "--shutdown-timeout",
                  "--expand-tools", "--fail-on-environ"),
    "logging": ("--disable-log-", "--enable-log-requests", "--aggregate-engine-logging"),
    "speculation": ("--spec", "--num-speculative", "--ngram-", "--typical-", "--disable-logprobs-during"),
    "parallel": ("--worker-use-ray", "--engine-use-ray"),
    "multimodal": ("--image-",),
    "compilation": ("--max-context-len-to-capture",),
    "cache": ("--use-v2-block-manager", "--quantization-param-path"),
    "prompt adapter": ("--prompt-adapters",),
    "kernel": ("--gdn-", "--kda-"),
}  # fmt: skip


def group(tables: Sequence[Record]) -> None:
    """Give a flag without a group the one that a later version, or else an earlier one, puts it in, or else ours."""
    for order in (list(reversed(tables)), list(tables)):
        known: dict[str, str] = {}
        for table in order:
            for flag in table["flags"]:
                if "group" in flag:
                    known[flag["name"]] = flag["group"]
                elif flag["name"] in known:
                    flag["group"] = known[flag["name"]]
    for table in tables:
        for flag in table["flags"]:
            if "group" not in flag and (ours := _ours(flag["name"])):
                flag["group"] = ours


def _ours(name: str) -> str | None:
    return next((group for group, starts in UNGROUPED.items() if name.startswith(starts)), None)


def flags(tables: Sequence[Record]) -> list[Record]:
    """One record a flag: every spelling, the words it takes in each version, and in which versions it is known.

    `spans` are [first, last] minors (last null: still there), `values` pairs of [from minor, arity].
    """
    minors = [t["minor"] for t in tables]
    found: dict[str, Record] = {}
    for at, table in enumerate(tables):
        for flag in table["flags"]:
            entry = found.setdefault(flag["name"], {"name": flag["name"], "spellings": [], "seen": [], "values": []})
            for word in flag.get("aliases", []) + flag.get("negations", []):
                if word not in entry["spellings"]:
                    entry["spellings"].append(word)
            arity = flag.get("values", "1")
            if not entry["values"] or entry["values"][-1][1] != arity:
                entry["values"].append([table["minor"], arity])
            entry["seen"].append(at)
    for entry in found.values():
        entry["spans"] = _spans(entry.pop("seen"), minors)
    return [found[name] for name in sorted(found)]


def variables(tables: Sequence[Record]) -> list[Record]:
    """One record an environment variable, with its spans."""
    minors = [t["minor"] for t in tables]
    seen: dict[str, list[int]] = {}
    for at, table in enumerate(tables):
        for variable in table["environment"]:
            seen.setdefault(variable["name"], []).append(at)
    return [{"name": name, "spans": _spans(seen[name], minors)} for name in sorted(seen)]


def _spans(seen: list[int], minors: list[str]) -> list[list[str | None]]:
    spans: list[list[int]] = []
    for at in seen:
        if spans and spans[-1][1] == at - 1:
            spans[-1][1] = at
        else:
            spans.append([at, at])
    return [[minors[a], None if b == len(minors) - 1 else minors[b]] for a, b in spans]
