"""A planning task from what a command line names: the model, and flags that the user pinned."""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.cli.models import Model
from trimtab.engine.command import FlagUse
from trimtab.plan.memory.card import Card
from trimtab.plan.pinned import named, pinned_of
from trimtab.plan.planner import Task


def task_of(
    found: Model, cards: tuple[Card, ...], version: str, pinned: Iterable[FlagUse], *, path: str | None = None,
    any_vllm: bool = False,
) -> Task:  # fmt: skip
    """`path`: where the model lies, else its own name; a pinned --served-model-name gives the name and its aliases."""
    names, others = named(pinned_of(pinned), found.served_name)
    return Task(
        model_path=path or found.ref,
        served_name=names[0],
        aliases=names[1:],
        model=found.facts,
        cards=cards,
        version=version,
        pinned=others,
        remote_code=found.remote_code,
        any_vllm=any_vllm,
    )
