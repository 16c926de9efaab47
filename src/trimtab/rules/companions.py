"""Which flags must stand beside a flag and which must not, out of the rules that judge it."""

from __future__ import annotations

import msgspec

from trimtab.rules.command.flag_without_its_partner import NEEDS
from trimtab.rules.command.flags_excluding_each_other import PAIRS
from trimtab.rules.runner import release


class Companions(msgspec.Struct, frozen=True):
    """Names with dashes, keys dotted: what must be given with the flag, and what must not in the same version."""

    needs: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()


def companions(name: str, version: str) -> Companions:
    """Those of a flag (name with its dashes) in one version of vLLM."""
    key, minor = name.lstrip("-"), release(version)[:2]
    needs = [n.partner for n in NEEDS if n.flag == key and release(n.since) <= minor <= release(n.until)]
    excludes = []
    for pair in PAIRS:
        if release(pair.since) <= minor <= release(pair.until):
            one, other = pair.one.partition(".")[0], pair.other.partition(".")[0]
            excludes += [pair.other] if one == key else [pair.one] if other == key else []
    return Companions(tuple(f"--{n}" for n in needs), tuple(f"--{n}" for n in excludes))
