"""Which GPUs a verb reckons with: the --gpu option, else the cards of this host."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from trimtab.errors import HostError, UsageError
from trimtab.facts.gpu import GpuSet, cpu, parse_gpus
from trimtab.facts.probe.gpus import Gpu, Gpus, read_gpus
from trimtab.facts.probe.host import read_host
from trimtab.messages import msg
from trimtab.plan.memory.card import Card


def gpus_named(spec: str | None, *, memory_needed: bool = True) -> GpuSet:
    """The GPUs of `spec`; "auto" or None: this host's. HostError when this host has none; UsageError of the spec's.

    With `memory_needed` a spec that tells no card's memory ("sm_75") is a UsageError too.
    """
    if spec is not None and spec.strip().lower() == "cpu":
        return cpu_set()
    if spec is not None and spec.strip().lower() != "auto":
        found = parse_gpus(spec)
        if memory_needed and not found.memory_known:
            raise UsageError(
                msg("{spec} does not tell how much memory a card has", spec=repr(spec)),
                hint=msg("Name the card, or add its memory: 2xsm_86 24GiB."),
            )
        return found
    return of_this_host(read_gpus())


def of_this_host(found: Gpus) -> GpuSet:
    """The cards that were found on this host. HostError when there are none."""
    if not found.cards:
        raise HostError(
            msg("this host shows no GPU: {reason}", reason=found.reason or msg("none is there")),
            hint=msg("Name the cards: --gpu 8xA10, --gpu H200, --gpu 24GiB, or --gpu cpu."),
        )
    return gpu_set(found.cards)


def cpu_set() -> GpuSet:
    """This host's memory (a container's limit, where there is one) as the CPU engine's card."""
    host = read_host()
    return cpu((host.memory_limit_bytes or host.memory_total_bytes) / (1 << 30))


def with_taken(cards: Sequence[Card], found: Sequence[Gpu]) -> tuple[Card, ...]:
    """Cards of this host, in its order, with what other processes hold of each."""
    taken = [(gpu.total_bytes - gpu.free_bytes) / (1 << 30) for gpu in found]
    return tuple(replace(card, taken_gib=gib) for card, gib in zip(cards, taken, strict=False))


def chosen_of(cards: Sequence[Gpu], devices: Sequence[str]) -> list[Gpu]:
    """Cards of `devices` (index or UUID), all where it names none."""
    return [card for card in cards if not devices or str(card.index) in devices or card.uuid in devices]


def gpu_set(cards: Sequence[Gpu], devices: Sequence[str] = ()) -> GpuSet:
    """Cards of this host as their driver reports them: those of `devices` (index or UUID), else all."""
    named = [f"{card.name} {card.total_bytes / (1 << 30):.2f}GiB" for card in chosen_of(cards, devices)]
    sets = [parse_gpus(name) for name in named]
    return GpuSet(tuple(member for one in sets for member in one.members), tuple(n for s in sets for n in s.notes))
