"""The command behind scripts/flags: which versions, where the sources are, what is written."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from . import history, packages, records, tables
from .records import Record

TABLES = Path(__file__).parents[2] / "src" / "trimtab" / "engine" / "flags" / "tables"

# The last patch of each minor version.
VERSIONS = (
    "0.4.3", "0.5.5", "0.6.6.post1", "0.7.3", "0.8.5.post1", "0.9.2", "0.10.2", "0.11.2", "0.12.0", "0.13.0", "0.14.1",
    "0.15.1", "0.16.0", "0.17.1", "0.18.1", "0.19.1", "0.20.2", "0.21.0", "0.22.1", "0.23.0", "0.24.0", "0.25.1",
    "0.26.0", "0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0",
)  # fmt: skip


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/flags")
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    parser.add_argument("--sources", type=Path, default=Path.home() / ".cache" / "trimtab-vllm-sources")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(argv)
    options.sources.mkdir(parents=True, exist_ok=True)
    if options.check:
        return max(check(version, options.sources) for version in options.versions)
    made = [_made_or_kept(v, options.versions, options.sources) for v in VERSIONS]
    history.group(made)
    TABLES.mkdir(parents=True, exist_ok=True)
    for table in made:
        records.write(TABLES / f"{table['minor']}.json", table)
    summary = {
        "minors": " ".join(t["minor"] for t in made),
        "flags": history.flags(made),
        "environment": history.variables(made),
    }
    records.write(TABLES / "history.json", summary)
    print(f"{len(made)} tables, {len(summary['flags'])} flags, {len(summary['environment'])} variables")
    return 0


def _made_or_kept(version: str, asked: list[str], sources: Path) -> Record:
    file = TABLES / f"{'.'.join(version.split('.')[:2])}.json"
    if asked and version not in asked and file.is_file():
        kept: Record = json.loads(file.read_text(encoding="utf-8"))
        return kept
    return tables.build(packages.unpack(version, sources), version)


def check(version: str, sources: Path) -> int:
    """0 when the version, made anew, equals the committed table but for groups lent by other versions."""
    made = tables.build(packages.unpack(version, sources), version)
    committed = json.loads((TABLES / f"{made['minor']}.json").read_text(encoding="utf-8"))
    groups = {f["name"]: f.get("group") for f in committed["flags"]}
    for flag in made["flags"]:
        if "group" not in flag and groups.get(flag["name"]):
            flag["group"] = groups[flag["name"]]
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "table.json"
        records.write(fresh, made)
        same = bool(json.loads(fresh.read_text(encoding="utf-8")) == committed)
    print(f"{version}: {'as committed' if same else 'differs from the committed table'}")
    return 0 if same else 1
