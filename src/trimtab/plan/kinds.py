"""Cards that people buy or rent, and sets of them by memory."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.facts.gpu import parse_gpus
from trimtab.plan.memory.card import Card, cards_of

KINDS = (
    "T4", "RTX 3060", "RTX 4060 Ti 16GB", "RTX 3090", "RTX 4090", "RTX 5090", "A10", "L4", "A30", "V100-32",
    "RTX A6000", "A40", "L40S", "RTX PRO 6000", "A100-40", "A100-80", "H100-80", "H200", "B200", "MI300X",
)  # fmt: skip
"""What `--gpu any` compares; `--gpu` takes every other card of the table."""
COUNTS = (1, 2, 4, 8)
"""Cards of one machine."""


def kinds() -> tuple[tuple[str, Card], ...]:
    """Name and card of each kind."""
    return tuple((name, cards_of(parse_gpus(name))[0]) for name in KINDS)


def smallest_sets(least_gib: float) -> Iterator[tuple[str, int, Card]]:
    """Sets of one machine that hold so much: kind, number and card, the least memory first."""
    found = [(n * card.total_gib, n, name, card) for name, card in kinds() for n in COUNTS]
    for total, count, name, card in sorted(found, key=lambda one: one[:3]):
        if total > least_gib:
            yield name, count, card
