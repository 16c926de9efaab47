"""vLLM's memory accounting, predicted: weights, context, activation, graphs, KV cache, verdict, by release."""

from __future__ import annotations

from trimtab.plan.memory.budget import Budget, budget
from trimtab.plan.memory.card import Card, cards_of
from trimtab.plan.memory.defaults import resolve
from trimtab.plan.memory.given import Given
from trimtab.plan.memory.launch import given_of
from trimtab.plan.memory.rank import Rank
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.verdict import Verdict
from trimtab.plan.memory.versions import Release, release

__all__ = [
    "Budget", "Card", "Given", "Rank", "Release", "Settings", "Verdict", "budget", "cards_of", "given_of", "release",
    "resolve",
]  # fmt: skip
