"""Trimtab: plan, lint, launch, verify and diagnose vLLM servers.

The names in `__all__` are the stable Python API (docs/api.md); each is loaded when it is first used.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing itself would be a third of what --version takes
if TYPE_CHECKING:
    from trimtab.api import budget, diagnose, lint, plan, verify
    from trimtab.bench.verify import Verification
    from trimtab.errors import (
        EngineError,
        HostError,
        InternalError,
        ModelError,
        TrimtabError,
        UpstreamError,
        UsageError,
    )
    from trimtab.plan.memory.budget import Budget
    from trimtab.plan.outcome import Plan
    from trimtab.rules.doctor import Diagnosis
    from trimtab.rules.lint import Linted

__version__ = "0.1.0"

__all__ = [
    "Budget", "Diagnosis", "EngineError", "HostError", "InternalError", "Linted", "ModelError", "Plan", "TrimtabError",
    "UpstreamError", "UsageError", "Verification", "__version__", "budget", "diagnose", "lint", "plan", "verify",
]  # fmt: skip

_PLACES = {
    "Budget": "trimtab.plan.memory.budget",
    "Diagnosis": "trimtab.rules.doctor",
    "Linted": "trimtab.rules.lint",
    "Plan": "trimtab.plan.outcome",
    "Verification": "trimtab.bench.verify",
    **dict.fromkeys(("budget", "diagnose", "lint", "plan", "verify"), "trimtab.api"),
    **dict.fromkeys((name for name in __all__ if name.endswith("Error")), "trimtab.errors"),
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'trimtab' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(type(sys)):  # type: ignore[misc]
    """This package, whose function `plan` stays one: the room of the same name, once imported, would take its place."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _PLACES:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
