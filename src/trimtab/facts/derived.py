"""A number that says where it came from; cheap enough to make thousands of times a second."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Generic, Literal, TypeVar

import msgspec

Source = Literal["measured", "declared", "table", "assumed", "computed"]
N = TypeVar("N", int, float)
_NO_INPUTS: Mapping[str, object] = MappingProxyType({})


class Derived(msgspec.Struct, Generic[N], frozen=True):
    """A value with its unit, the formula it came from (a name or a short expression) and that formula's inputs.

    `source` grades the weakest part: measured > declared (a config or header) > table (ours) > computed > assumed.
    `note` cites the file, paper or thread that the formula is from.
    """

    value: N
    unit: str
    formula: str
    source: Source = "computed"
    inputs: Mapping[str, object] = msgspec.field(default_factory=lambda: _NO_INPUTS)
    note: str = ""
