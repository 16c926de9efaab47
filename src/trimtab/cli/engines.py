"""Which vLLM a verb starts: the one named, else the one that is there already, else one that Trimtab installed."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

from trimtab.cli.settings import engines_root
from trimtab.errors import HostError, UsageError
from trimtab.messages import msg
from trimtab.supervisor.environments import Engine, find_external, installed
from trimtab.supervisor.install import install_cpu
from trimtab.supervisor.progress import Observer


def choose_engine(name: str | None, python: Path | None, *, has_gpu: bool) -> Engine:
    """The engine to start. UsageError for one that is not there; HostError when there is none at all."""
    if name is not None:
        return _named(name, installed(engines_root()))
    found = find_external(python, os.environ, os.environ.get("PATH"))
    if found is not None:
        return found
    ours = installed(engines_root())
    wanted = "cuda" if has_gpu else "cpu"
    fit = [engine for engine in ours if engine.kind == wanted] or ([] if has_gpu else ours)
    if fit:
        return max(fit, key=lambda engine: tuple(int(n) for n in engine.version.split(".") if n.isdigit()))
    raise HostError(
        msg("no vLLM for {kind} is installed here", kind=wanted.upper()),
        hint=msg("Run: trimtab engine install {kind}; or name one that you have: --engine-python PATH", kind=wanted),
    )


def cpu_engine(progress: Observer) -> Engine:
    """The newest CPU engine that Trimtab installed; installs one when there is none."""
    ours = [engine for engine in installed(engines_root()) if engine.kind == "cpu"]
    return ours[-1] if ours else install_cpu(engines_root(), None, progress)


def _named(name: str, ours: list[Engine]) -> Engine:
    for engine in ours:
        if engine.name == name:
            return engine
    names = [engine.name for engine in ours]
    near = get_close_matches(name, names, 1, 0.4)
    raise UsageError(
        msg("no engine is called {name}; installed: {names}", name=repr(name), names=", ".join(names) or "-"),
        hint=msg("Did you mean {near}?", near=near[0]) if near else msg("Run: trimtab engine install cpu"),
    )
