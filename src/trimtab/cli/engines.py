"""Which vLLM a verb starts: the one named, else the one that is there already, else one that Trimtab installed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from trimtab.cli.settings import engines_root
from trimtab.engine.supported import lowest_capability, newest_for
from trimtab.errors import HostError, UsageError
from trimtab.facts.probe.gpus import Gpu
from trimtab.messages import Message, msg
from trimtab.supervisor.environments import Engine, find_external, installed
from trimtab.supervisor.install import install_cpu
from trimtab.supervisor.progress import Observer


def choose_engine(name: str | None, python: Path | None, cards: Sequence[Gpu]) -> Engine:
    """The engine to start on this host's cards, or on its CPU where it has none.

    UsageError for one that is not there; HostError when there is none at all, or none that is built for the cards.
    """
    if name is not None:
        return _named(name, installed(engines_root()))
    found = find_external(python, os.environ, os.environ.get("PATH"))
    if found is not None:
        return found
    ours = installed(engines_root())
    wanted = "cuda" if cards else "cpu"
    of_kind = [engine for engine in ours if engine.kind == wanted] or ([] if cards else ours)
    oldest = min(cards, key=lambda card: card.compute_capability, default=None)
    fit = [engine for engine in of_kind if oldest is None or _built_for(engine, oldest)]
    if fit:
        return max(fit, key=lambda engine: tuple(int(n) for n in engine.version.split(".") if n.isdigit()))
    if of_kind and oldest is not None:
        raise HostError(
            msg("{card} has compute capability {have}; {engines} are built for newer cards", card=oldest.name,
                have=".".join(map(str, oldest.compute_capability)), engines=", ".join(e.name for e in of_kind)),
            hint=_install_for(oldest),
        )  # fmt: skip
    raise HostError(
        msg("no vLLM for {kind} is installed here", kind=wanted.upper()),
        hint=msg("Run: trimtab engine install {kind}; or name one that you have: --engine-python PATH", kind=wanted),
    )


def _built_for(engine: Engine, card: Gpu) -> bool:
    return engine.kind != "cuda" or lowest_capability(engine.version) <= _capability(card)


def _install_for(card: Gpu) -> Message:
    newest = newest_for(_capability(card))
    if newest is None:
        return msg("No release of vLLM is built for it: use another card, or trimtab engine install cpu.")
    return msg("Run: trimtab engine install cuda --version {version}", version=newest)


def _capability(card: Gpu) -> int:
    major, minor = card.compute_capability
    return 10 * major + minor


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
