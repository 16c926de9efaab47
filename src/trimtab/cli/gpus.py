"""Which GPUs a verb reckons with: the --gpu option, else the cards of this host."""

from __future__ import annotations

from trimtab.engine.command import LaunchCommand
from trimtab.errors import HostError
from trimtab.facts.gpu import GpuSet, cpu, parse_gpus
from trimtab.messages import msg


def gpus_named(spec: str | None, command: LaunchCommand | None = None) -> GpuSet:
    """The GPUs of `spec`; "auto" or None: this host's. HostError when this host has none; UsageError of the spec's."""
    if spec is not None and spec.strip().lower() == "cpu":
        return cpu(_host_memory_gib())
    if spec is not None and spec.strip().lower() != "auto":
        return parse_gpus(spec)
    from trimtab.facts.probe.gpus import read_gpus

    found = read_gpus()
    if not found.cards:
        raise HostError(
            msg("this host shows no GPU: {reason}", reason=found.reason or msg("none is there")),
            hint=msg("Name the cards: --gpu 8xA10, --gpu H200, --gpu 24GiB, or --gpu cpu."),
        )
    sets = [parse_gpus(f"{card.name} {card.total_bytes / (1 << 30):.2f}GiB") for card in found.cards]
    return GpuSet(tuple(member for one in sets for member in one.members), tuple(n for s in sets for n in s.notes))


def _host_memory_gib() -> float:
    import psutil

    return float(psutil.virtual_memory().total) / (1 << 30)
