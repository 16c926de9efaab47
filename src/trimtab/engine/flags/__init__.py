"""Every flag and environment variable of every vLLM from 0.4 on, by version; read from tables made by scripts/flags."""

from trimtab.engine.flags.history import (
    Change,
    Difference,
    Span,
    Successor,
    arity,
    changes,
    diff,
    difference,
    history,
    known_names,
    known_variables,
    successor,
    takes_value,
)
from trimtab.engine.flags.spec import Accepts, BatchDefault, EnvSpec, FlagSpec, Kind
from trimtab.engine.flags.table import FlagTable, minors, nearest

__all__ = [
    "Accepts",
    "BatchDefault",
    "Change",
    "Difference",
    "EnvSpec",
    "FlagSpec",
    "FlagTable",
    "Kind",
    "Span",
    "Successor",
    "arity",
    "changes",
    "diff",
    "difference",
    "history",
    "known_names",
    "known_variables",
    "minors",
    "nearest",
    "successor",
    "takes_value",
]
