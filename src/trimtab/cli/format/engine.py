"""How engines are shown: as text for people, as JSON (`trimtab.engine/1`) for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from trimtab.messages import msg
from trimtab.supervisor.environments import Engine

GIB = 1024**3


def engine_json(engines: Sequence[Engine]) -> str:
    """Every field of each engine; paths as text."""
    rows = [{**asdict(engine), "python": str(engine.python)} for engine in engines]
    return json.dumps({"schema": "trimtab.engine/1", "engines": rows}, indent=2)


def engines_text(engines: Sequence[Engine], lang: str) -> str:
    """A table, or how to get an engine when there is none."""
    if not engines:
        return msg("no engine is installed; run: trimtab engine install cpu").text(lang)
    head = [msg("name"), msg("vLLM"), msg("size"), msg("Python")]
    rows = [[cell.text(lang) for cell in head]]
    rows += [[e.name, e.version, f"{e.size_bytes / GIB:.1f} GiB", str(e.python)] for e in engines]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def installed_text(engine: Engine, lang: str) -> str:
    """What was installed where, each repair with what was seen before and after, and what a start needs."""
    size = f"{engine.size_bytes / GIB:.1f}"
    lines = [
        msg("engine {name}: vLLM {version}, {size} GiB", name=engine.name, version=engine.version, size=size).text(
            lang
        ),
        msg("Python: {python}", python=engine.python).text(lang),
    ]
    for repair in engine.repairs:
        values = {"name": repair.name, "observed": repair.observed, "done": repair.done, "verified": repair.verified}
        lines.append(msg("repaired {name}: seen: {observed}; done: {done}; verified: {verified}", **values).text(lang))
    for name, value in engine.env.items():
        lines.append(msg("a start needs {name}={value}", name=name, value=value).text(lang))
    return "\n".join(lines)
