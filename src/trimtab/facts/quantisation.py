"""How a checkpoint's weights are packed: its declared quantisation, and the bytes of one matrix under it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache

import msgspec


class Scheme(msgspec.Struct, frozen=True):
    """One packing of a matrix of `out` x `into`.

    `bits` per element. Scales of `scale_bytes` each: one per `block` (rows, columns), one per `group` of inputs and
    output (group > 0), one per output (group = -1) or one per fused matrix (group = 0).
    `zero_bits` per group and output, `order_bytes` per input (GPTQ's g_idx), `stored_zero_bits` where the file holds
    zeros that vLLM drops; `extra_bytes` per fused matrix (input scales, second scales).
    """

    name: str = "none"
    bits: float = 16
    group: int = 0
    block: tuple[int, int] | None = None
    scale_bytes: int = 2
    zero_bits: float = 0
    order_bytes: int = 0
    stored_zero_bits: float = 0
    stored_order_bytes: int = 0
    stored_scale_bytes: float | None = None
    extra_bytes: int = 0
    padded: bool = False
    """vLLM rounds an expert's sides up to its kernel's tile when it loads (mxfp4)."""

    def loaded_tensors(self, out: int, into: int, copies: int = 1, fused: int = 1) -> tuple[int, ...]:
        """Bytes of each tensor that vLLM holds for `copies` matrices: weight, scales, zeros, order, small scales."""
        parts = (
            int(copies * out * into * self.bits / 8),
            int(copies * self._scales(out, into, fused) * self.scale_bytes),
            int(copies * out * self._groups(into) * self.zero_bits / 8),
            copies * into * self.order_bytes,
            copies * fused * self.extra_bytes,
        )
        return tuple(b for b in parts if b)

    def stored_bytes(self, out: int, into: int, copies: int = 1, fused: int = 1) -> int:
        """Bytes of the same in the checkpoint."""
        scale_bytes = self.scale_bytes if self.stored_scale_bytes is None else self.stored_scale_bytes
        return (
            int(copies * out * into * self.bits / 8)
            + int(copies * self._scales(out, into, fused) * scale_bytes)
            + int(copies * out * self._groups(into) * max(self.zero_bits, self.stored_zero_bits) / 8)
            + copies * into * max(self.order_bytes, self.stored_order_bytes)
            + copies * fused * self.extra_bytes
        )

    def _groups(self, into: int) -> int:
        return -(-into // self.group) if self.group > 0 else 1

    def _scales(self, out: int, into: int, fused: int) -> int:
        if self.block is not None:
            return -(-out // self.block[0]) * -(-into // self.block[1])
        return fused if self.group == 0 else out * self._groups(into)


UNQUANTISED = Scheme()


class Group(msgspec.Struct, frozen=True):
    """One scheme of a mixed checkpoint and the modules it holds for (empty: all linear layers)."""

    scheme: Scheme
    targets: tuple[str, ...] = ()


class Quantisation(msgspec.Struct, frozen=True):
    """A checkpoint's quantisation as its config declares it.

    `method` is vLLM's name for it. `groups` in order of preference; modules that `excluded` names (a name, a dotted
    part of one, a glob or "re:...") stay in 16 bit. `kv_scheme` is the KV cache's ("fp8" or empty).
    """

    method: str
    groups: tuple[Group, ...]
    excluded: tuple[str, ...] = ()
    kv_scheme: str = ""
    lm_head: bool = False
    note: str = ""

    @property
    def scheme(self) -> Scheme:
        """The scheme of most weights: the first group's."""
        return self.groups[0].scheme if self.groups else UNQUANTISED

    def scheme_for(self, names: tuple[str, ...]) -> Scheme:
        """The scheme of the module that has these names (the checkpoint's names of one fused module)."""
        if self.excluded and any(_named(self.excluded, name) for name in names):
            return UNQUANTISED
        for group in self.groups:
            if not group.targets or any(_named(group.targets, name) for name in names):
                return group.scheme
        return UNQUANTISED


PREFIXES = re.compile(r"^(model\.)?(language_model|text_model|llm|thinker)\.(model\.)?")


@cache
def _pattern(pattern: str) -> tuple[str, re.Pattern[str] | None]:
    if pattern.startswith("re:"):
        try:
            return "", re.compile(pattern[3:])
        except re.error:
            return pattern[3:], None
    return PREFIXES.sub("model.", pattern), None


@cache
def matches(pattern: str, name: str) -> bool:
    """Whether an exclusion pattern names this module or one that it is inside of."""
    plain, regex = _pattern(pattern)
    if regex is not None:
        nested = name.replace("model.", "model.language_model.", 1)
        return bool(regex.match(name) or regex.match(nested))
    if "*" in plain:
        return fnmatchcase(name, plain) or fnmatchcase(name, plain + ".*") or fnmatchcase(name, "*." + plain)
    return f".{plain}." in f".{name}."


@cache
def _sorted(patterns: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The dotted parts of names among the patterns, and those that must be tried one by one."""
    plain = frozenset(text for text, regex in map(_pattern, patterns) if regex is None and "*" not in text)
    return plain, tuple(p for p in patterns if _pattern(p)[0] not in plain)


@cache
def _named(patterns: tuple[str, ...], name: str) -> bool:
    """Whether one of the patterns matches; a mixed checkpoint may name tens of thousands of modules."""
    plain, others = _sorted(patterns)
    parts = name.split(".")
    runs = (".".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1))
    return any(run in plain for run in runs) or any(matches(p, name) for p in others)
