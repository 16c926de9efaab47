"""What a flag table holds of one flag and of one environment variable, in one version of vLLM."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Kind = Literal["switch", "bool", "int", "float", "str", "size", "json", "json-or-str", "name=path"]
"""What a value is. switch: none is given; size: an integer, also written 4k (thousands) or 4K (1,024s)."""


Newer = Literal["V1", "V2 runner"]
"""A newer engine or model runner of vLLM that an older one stands in for where it cannot do what a flag asks."""


class FlagSpec(msgspec.Struct, frozen=True):
    """One flag as one version's parser has it; the positional model is `model_tag`."""

    name: str  # "--max-model-len"
    kind: Kind = "str"
    values: str = "1"  # words it takes, as argparse says it: "0", "1", "?", "*", "+" or a number
    aliases: tuple[str, ...] = ()  # other spellings, short ones too
    negations: tuple[str, ...] = ()  # spellings that switch it off
    choices: tuple[str | int | float | bool, ...] = ()
    open: bool = False  # `choices` are the known ones; plug-ins may add others, so the parser checks none
    default: Any = None  # what the parser has; None where vLLM chooses later (see FlagTable.default)
    nullable: bool = False  # takes None, or none
    required: bool = False
    repeats: bool = False  # may be given many times, each adding a value
    group: str | None = None  # "model", "cache", "parallel", "scheduler", "front end" ...
    config: str | None = None  # for JSON: the config class that reads it
    keys: tuple[str, ...] = ()  # the keys that this class knows
    dest: str | None = None  # its name inside vLLM where that is not the spelling
    entry: Literal["serve"] | None = None  # known to `vllm serve` alone
    deprecated: bool = False
    removal: str | None = None  # the version that vLLM announced for its removal
    no_op: bool = False  # accepted and ignored
    engine: Literal["V0", "V1"] | None = None  # the generation that alone reads it; None: every one there is
    unsupported: tuple[Newer, ...] = ()  # what is not used, or refuses, with it or with some values of it

    @property
    def key(self) -> str:
        """The name without dashes in front: "max-model-len"."""
        return self.name.lstrip("-")

    @property
    def is_switch(self) -> bool:
        """Whether it stands alone, without a value."""
        return self.values == "0"

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every spelling, name first."""
        return (self.name, *self.aliases, *self.negations)


class EnvSpec(msgspec.Struct, frozen=True):
    """One environment variable that vLLM's envs.py reads; default None: unset, or taken from the machine."""

    name: str
    kind: str = "str"
    default: Any = None
    choices: tuple[str, ...] = ()


class BatchDefault(msgspec.Struct, frozen=True):
    """The batch limits vLLM chooses where none is given, from a card's memory (GiB) on, or for one card."""

    entry: Literal["server", "offline"]
    from_gib: int
    card: str | None = None  # part of the device's name, lower case
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None


class Accepts(msgspec.Struct, frozen=True):
    """Which other spellings the parser takes."""

    underscores: bool  # --max_model_len
    dotted: bool  # --compilation-config.mode 3


class TableFile(msgspec.Struct, frozen=True):
    """One file of tables/, as scripts/flags writes it."""

    version: str
    minor: str
    accepts: Accepts
    flags: tuple[FlagSpec, ...]
    environment: tuple[EnvSpec, ...]
    engines: str = "V1"  # the generations this version has, the default one first: "V0", "V0 V1", "V1 V0", "V1"
    absent_on_cpu: str = ""
    cpu: tuple[FlagSpec, ...] = ()
    batch: tuple[BatchDefault, ...] = ()
    cpu_batch: tuple[BatchDefault, ...] = ()
