"""What vLLM refuses on these cards whatever the flags: a release built for newer ones, a method that needs them."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.engine.supported import (
    first_release,
    least_capability,
    lowest_capability,
    newest_for,
    unregistered,
)
from trimtab.messages import Message, msg
from trimtab.plan.wish import Task


def too_old(task: Task) -> Message | None:
    """Why the wheels of this vLLM do not run on the cards; None where they do."""
    needed, card = lowest_capability(task.version), task.cards[0]
    if card.vendor != "nvidia" or _capability(task) >= needed:
        return None
    return msg(
        "{card} has compute capability {have:.1f}; vLLM {version} is built for {need:.1f} and newer",
        card=card.name,
        have=card.capability,
        version=task.version,
        need=needed / 10,
    )


def unknown_model(task: Task) -> Message | None:
    """Why this vLLM has no code for the model where a later one has; None where it has."""
    architecture = task.model.architecture
    if "model_impl" in task.pinned or not unregistered(architecture, task.version):
        return None
    return msg(
        "vLLM {version} does not know {architecture}; {first} does",
        version=task.version,
        architecture=architecture,
        first=first_release(architecture) or "",
    )


def unsupported(task: Task) -> Message | None:
    """Why vLLM would refuse these cards for this model; None where it would not."""
    old = too_old(task) or unknown_model(task)
    asked = task.pinned.get("quantization")
    method = asked if isinstance(asked, str) else task.model.quantisation.method if task.model.quantisation else None
    if old is not None or method is None or task.cards[0].vendor != "nvidia":
        return old
    needed = least_capability(method, task.version, asked=isinstance(asked, str))
    if _capability(task) >= needed:
        return None
    return msg(
        "{method} needs compute capability {needed:.1f} in vLLM {version}; {card} has {have:.1f}",
        method=method,
        needed=needed / 10,
        version=task.version,
        card=task.cards[0].name,
        have=task.cards[0].capability,
    )


def with_release(task: Task) -> Task:
    """The task with a vLLM that is built for its cards, where the version is the planner's to choose."""
    other = newest_that_runs(task) if task.any_vllm and too_old(task) is not None else None
    return task if other is None else replace(task, version=other)


def newest_that_runs(task: Task) -> str | None:
    """The newest vLLM whose wheels run on the cards; None where none does."""
    return newest_for(_capability(task))


def _capability(task: Task) -> int:
    return round(min(card.capability for card in task.cards) * 10)
