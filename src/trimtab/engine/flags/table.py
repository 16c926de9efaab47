"""The flag table of one version of vLLM: what its command line takes, and what it chooses where nothing is given."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Literal

import msgspec

from trimtab.engine.flags.spec import Accepts, BatchDefault, EnvSpec, FlagSpec
from trimtab.engine.flags.versions import minors, nearest_table, parse, read
from trimtab.messages import Message, msg

__all__ = ["FlagTable", "minors"]

Build = Literal["cuda", "cpu"]


class FlagTable(msgspec.Struct, frozen=True, dict=True):
    """Flags and environment variables of one version and build.

    `version` is the one asked for, `source` the exact version the table was made from. `unknown_newer`: newer than
    every table; `older`: older than every table; `note` says so in words, or that the table is of another patch; None
    where it is the version's own.
    """

    version: str
    source: str
    build: Build
    accepts: Accepts
    flags: tuple[FlagSpec, ...]
    environment: tuple[EnvSpec, ...]
    batch: tuple[BatchDefault, ...] = ()
    unknown_newer: bool = False
    older: bool = False
    note: Message | None = None
    from_engine: bool = False  # read from an installed vLLM's own parser
    engines: str = "V1"  # the generations of the engine, the default one first

    @cached_property
    def _index(self) -> Mapping[str, FlagSpec]:
        """Spelling -> flag, for every spelling; a name counts before another flag's alias."""
        found = {spelling: flag for flag in self.flags for spelling in flag.spellings}
        return found | {flag.name: flag for flag in self.flags}

    @staticmethod
    def for_version(version: str | None = None, build: Build = "cuda") -> FlagTable:
        """The table that serves `version` (None: the newest known); UsageError when it is no version."""
        return _table(version or minors()[-1], build)

    @property
    def origin(self) -> Message | None:
        """What is to be said of where this comes from: the note, or that an installed vLLM told it; else None."""
        if self.from_engine:
            return msg("vLLM {version} ({build}): as its own parser here says", version=self.source, build=self.build)
        return self.note

    @property
    def own_defaults(self) -> Mapping[str, Any]:
        """Defaults of an installed vLLM that are not those of its release: vLLM's name (underscores) -> value."""
        if not self.from_engine:
            return {}
        usual = FlagTable.for_version(self.version, self.build)
        known = ((flag, usual.find(flag.name)) for flag in self.flags)
        return {f.key.replace("-", "_"): f.default for f, k in known if k is not None and k.default != f.default}

    def find(self, spelling: str) -> FlagSpec | None:
        """The flag spelt so: with or without dashes in front, underscores, an alias, `--no-x`, `--x.key`, `--x=1`."""
        word = spelling.partition("=")[0]
        if word.startswith("-O"):
            return self._index.get("-O") or self._index.get("--optimization-level")
        head = word.split(".")[0] if word.startswith("--") or "." in word else word
        if head in self._index:
            return self._index[head]
        return self._index.get("--" + head.lstrip("-").replace("_", "-")) or self._index.get(f"-{head}")

    def is_negated(self, spelling: str) -> bool:
        """Whether this spelling switches its flag off."""
        found = self.find(spelling)
        word = "--" + spelling.partition("=")[0].lstrip("-").replace("_", "-")
        return found is not None and word in found.negations

    def nearest(self, name: str, count: int = 3) -> list[str]:
        """Known flag names like this one, likest first; at most `count`."""
        return nearest(name, [flag.name for flag in self.flags], count)

    def variable(self, name: str) -> EnvSpec | None:
        """The environment variable with this name."""
        return next((v for v in self.environment if v.name == name), None)

    def default(
        self, name: str, memory_gib: float | None = None, card: str = "", entry: Literal["server", "offline"] = "server"
    ) -> Any:
        """The value in force where the flag is not given; None: not stated by the parser, or not a known flag.

        vLLM chooses max-num-seqs and max-num-batched-tokens by the card's memory (GiB) and name, and by entry point.
        """
        spec = self.find(name)
        if spec is None or spec.default is not None:
            return spec.default if spec else None
        key = spec.key.replace("-", "_")
        if key not in ("max_num_seqs", "max_num_batched_tokens") or not self.batch:
            return None
        row = self._batch_row(memory_gib or 0, card.lower(), entry)
        return getattr(row, key) if row else None

    def _batch_row(self, memory_gib: float, card: str, entry: str) -> BatchDefault | None:
        rows = [r for r in self.batch if r.entry == entry and r.from_gib <= memory_gib]
        named = [r for r in rows if r.card and r.card in card]
        general = [r for r in rows if r.card is None]
        if not general:
            return None
        last = general[-1]
        return next((r for r in reversed(named) if r.from_gib >= last.from_gib), last)


def nearest(name: str, known: Sequence[str], count: int = 3) -> list[str]:
    """Names out of `known` like `name`, likest first, dashes and underscores alike."""
    wanted = "--" + name.partition("=")[0].lstrip("-").replace("_", "-").lower()
    return difflib.get_close_matches(wanted, known, n=count, cutoff=0.7)


@cache
def _table(version: str, build: Build) -> FlagTable:
    file = read(nearest_table(version))
    flags = file.flags
    if build == "cpu":
        own = {f.name: f for f in file.cpu}
        absent = set(file.absent_on_cpu.split())
        flags = tuple(own.pop(f.name, f) for f in flags if f.name not in absent) + tuple(own.values())
    wanted, known, newest = parse(version), parse(file.minor), parse(minors()[-1])
    return FlagTable(
        version, file.version, build, file.accepts, flags, file.environment,
        file.cpu_batch if build == "cpu" else file.batch, wanted > newest, wanted < known,
        _note(version, file.version, wanted, known, newest), engines=file.engines,
    )  # fmt: skip


def _note(
    version: str, source: str, wanted: tuple[int, int], known: tuple[int, int], newest: tuple[int, int]
) -> Message | None:
    if wanted > newest:
        return msg(
            "vLLM {version} is newer than every table here; read by that of {source}", version=version, source=source
        )
    if wanted < known:
        return msg(
            "vLLM {version} is older than every table here; read by that of {source}", version=version, source=source
        )
    if wanted != known or _patch(version) not in (None, _patch(source)):
        return msg("no table of vLLM {version}; read by that of {source}", version=version, source=source)
    return None


def _patch(version: str) -> str | None:
    """The third number of a version; None where it names a minor version alone."""
    found = re.match(r"v?\d+\.\d+\.(\d+)", version)
    return found.group(1) if found else None
