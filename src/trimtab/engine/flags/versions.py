"""Which table serves a version of vLLM, and what is to be said where it is not that version's own."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from trimtab import shipped
from trimtab.engine.flags.spec import TableFile
from trimtab.errors import UsageError
from trimtab.messages import msg

VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:[.+-]?[a-z].*|\+.*|\.\d+.*)?", re.I)


class _Tables(msgspec.Struct):
    minors: str


def parse(version: str) -> tuple[int, int]:
    """ "0.26", "v0.26.0" or "0.26.1rc1+cu129" -> (0, 26); UsageError for anything else."""
    match = VERSION.fullmatch(version.strip())
    if match is None:
        raise UsageError(
            msg("{version!r} is not a vLLM version", version=version), hint=msg("Write it like 0.26 or 0.26.0.")
        )
    return int(match[1]), int(match[2])


@cache
def minors() -> tuple[str, ...]:
    """The minor versions that have a table, oldest first."""
    data = shipped.read("trimtab.engine.flags", "tables/history.json")
    return tuple(msgspec.json.decode(data, type=_Tables).minors.split())


def nearest_table(version: str) -> str:
    """The minor whose table serves `version`: its own, else the nearest lower one, else the oldest."""
    wanted = parse(version)
    return next((m for m in reversed(minors()) if parse(m) <= wanted), minors()[0])


@cache
def read(minor: str) -> TableFile:
    """The table of a minor that has one."""
    data = shipped.read("trimtab.engine.flags", f"tables/{minor}.json")
    return msgspec.json.decode(data, type=TableFile)
